import type { Actor, Database } from "../../src/index.ts";

/** A change on records of its own, and the same again, which must change nothing or be refused. */
export type AuditedChange = (db: Database) => Promise<{
  subjectId: string;
  again: () => Promise<unknown>;
  /** Who has made it. @default the actor of the test */
  by?: Actor;
}>;
