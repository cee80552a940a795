import type { WorkDatabase } from "./open-database.ts";
import { scannedBetween, tableReads, type WrongPlan, wrongPlans } from "./statement-plans.ts";
import type { Work } from "./works.ts";

/** What a work has sent, and what is wrong with it. */
export interface CheckedWork {
  readonly work: Work;
  readonly statements: number;
  readonly wrongPlans: readonly WrongPlan[];
  /** Tables that grow and were scanned in fact, by whatever: triggers and foreign keys have no plan to look at. */
  readonly scanned: readonly string[];
}

/** Does each work once, and looks at the plans of what it has sent and at what was read for it. */
export async function checkWorks(database: WorkDatabase, works: readonly Work[]): Promise<readonly CheckedWork[]> {
  const checked: CheckedWork[] = [];
  for (const work of works) {
    const before = await tableReads(database.session);
    await work.run(database);
    const scanned = scannedBetween(before, await tableReads(database.session));
    const statements = database.takeStatements();
    if (statements.length === 0) throw new Error(`${work.name}: nothing was sent.`);
    const wrong: WrongPlan[] = [];
    for (const sent of statements) wrong.push(...(await wrongPlans(database.session, sent)));
    checked.push({ work, statements: statements.length, wrongPlans: wrong, scanned });
  }
  return checked;
}

/** What is wrong, in words; empty: nothing. */
export function problemsOf({ work, wrongPlans, scanned }: CheckedWork): readonly string[] {
  return [
    ...wrongPlans.map(({ kind, text, plan }) => `${work.name}: a plan ${kind} scans a table\n${text}\n${plan}`),
    ...scanned.map((table) => `${work.name}: ${table} was scanned`),
  ];
}
