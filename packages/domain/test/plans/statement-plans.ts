import type postgres from "postgres";

/** A statement as it was sent. */
export interface SentStatement {
  readonly text: string;
  readonly parameters: readonly unknown[];
  /** Whether its transaction has it planned for its parameters each time. */
  readonly plannedForParameters: boolean;
}

/** Gathers each statement once, as it is sent first. For the hooks of statements. */
export class StatementLog {
  readonly statements = new Map<string, SentStatement>();
  #plannedForParameters = false;

  readonly note = async (text: string, parameters: readonly unknown[]): Promise<void> => {
    if (/^begin\b/i.test(text)) this.#plannedForParameters = false;
    if (text.includes("force_custom_plan")) this.#plannedForParameters = true;
    if (!/^\s*(with|select|insert|update|delete)\b/i.test(text) || this.statements.has(text)) return;
    this.statements.set(text, { text, parameters, plannedForParameters: this.#plannedForParameters });
  };

  /** Gives what was gathered, and forgets it. */
  take(): readonly SentStatement[] {
    const taken = [...this.statements.values()];
    this.statements.clear();
    this.#plannedForParameters = false;
    return taken;
  }
}

/**
 * The tables that grow with the fleet and with time. Products, firmware, rollouts and keys are few; figure_deltas is
 * emptied every few seconds, by a statement that takes all there is.
 */
export const GROWING_TABLES = [
  "devices",
  "upgrades",
  "upgrade_attempts",
  "attempt_events",
  "rollout_devices",
  "audit_log",
  "figures",
] as const;

const SCAN = new RegExp(`Seq Scan on (${GROWING_TABLES.join("|")})\\b`);

/** A plan that reads a whole table. */
export interface WrongPlan {
  readonly text: string;
  readonly kind: "for any parameters" | "for its parameters";
  readonly plan: string;
}

/**
 * Has a statement planned as a prepared one is: for its parameters, as in its first five executions, and for any, as
 * PostgreSQL may do from then on. Gives the plans that scan a table which grows.
 */
export async function wrongPlans(client: postgres.Sql, sent: SentStatement): Promise<readonly WrongPlan[]> {
  const { text, parameters } = sent;
  const plans: WrongPlan[] = [{ text, kind: "for its parameters", plan: await planFor(client, sent) }];
  if (!sent.plannedForParameters && parameters.length > 0) {
    plans.push({ text, kind: "for any parameters", plan: await genericPlan(client, sent) });
  }
  for (const { plan } of plans) if (!/\(cost=/.test(plan)) throw new Error(`This is no plan: ${plan}`);
  return plans.filter(({ plan }) => SCAN.test(plan));
}

async function planFor(client: postgres.Sql, { text, parameters }: SentStatement): Promise<string> {
  return textOf(await client.unsafe(`explain ${text}`, [...parameters] as never[]));
}

async function genericPlan(client: postgres.Sql, { text, parameters }: SentStatement): Promise<string> {
  return client.begin(async (tx) => {
    await tx.unsafe("set local plan_cache_mode = force_generic_plan");
    await tx.unsafe(`prepare any_parameters as ${text}`);
    const rows = await tx.unsafe(`explain execute any_parameters(${parameters.map(() => "null").join(", ")})`);
    await tx.unsafe("deallocate any_parameters");
    return textOf(rows);
  }) as Promise<string>;
}

function textOf(rows: readonly Readonly<Record<string, unknown>>[]): string {
  return rows.map((row) => row["QUERY PLAN"]).join("\n");
}

/** What was read of the tables that grow since the beginning, also by triggers and foreign keys, which no plan shows. */
export interface TableReads {
  readonly scans: Readonly<Record<string, number>>;
  /** Blocks of 8 KiB, of tables and indexes. */
  readonly blocks: number;
}

/** Reads them, once the given session has handed in its own. */
export async function tableReads(session: postgres.Sql): Promise<TableReads> {
  await session`select pg_stat_force_next_flush()`;
  const rows = await session<{ table: string; scans: number; blocks: number }[]>`
    select t.relname as "table", t.seq_scan::float8 as scans,
      (coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0) + coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0))::float8 as blocks
    from pg_stat_user_tables t join pg_statio_user_tables io using (relid)
    where t.relname = any (${[...GROWING_TABLES]})`;
  return {
    scans: Object.fromEntries(rows.map(({ table, scans }) => [table, scans])),
    blocks: rows.reduce((sum, { blocks }) => sum + blocks, 0),
  };
}

/** The tables that were scanned between the two. */
export function scannedBetween(before: TableReads, after: TableReads): readonly string[] {
  return GROWING_TABLES.filter((table) => (after.scans[table] ?? 0) > (before.scans[table] ?? 0));
}
