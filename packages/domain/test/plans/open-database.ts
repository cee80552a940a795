import type { Database, UpdateChecks } from "@ota/domain";
import { hookStatements } from "@ota/testkit";
import { drizzle } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import { schema } from "../../src/index.ts";
import { startChecks } from "../support/fleet.ts";
import type { FleetSize } from "./fleet-data.ts";
import { openSizedFleet, type SizedFleet } from "./sized-fleet.ts";
import { type SentStatement, StatementLog } from "./statement-plans.ts";

/** A filled database, and one connection to it over which works are done as the service does them. */
export interface WorkDatabase {
  readonly fleet: SizedFleet;
  readonly db: Database;
  readonly checks: UpdateChecks;
  /** The connection of `db`, past its hooks. */
  readonly session: postgres.Sql;
  /** The id of the server's process that works for the connection. */
  readonly backendPid: number;
  /** The statements sent since the last call, each once. */
  takeStatements(): readonly SentStatement[];
  close(): Promise<void>;
}

export async function openDatabase(url: string, size: FleetSize): Promise<WorkDatabase> {
  const session = postgres(url, { max: 1, onnotice: () => {}, max_lifetime: null });
  const log = new StatementLog();
  const db = drizzle(hookStatements(session, { before: log.note, prepared: true }), { schema });
  const fleet = await openSizedFleet({ db, client: session }, size);
  // Its last-seen times are written when a work says so.
  const checks = startChecks(db, { settings: { lastSeenFlushMs: 3_600_000 } });
  const [backend] = await session<{ pid: number }[]>`select pg_backend_pid() as pid`;
  log.take();
  return {
    ...{ fleet, db, checks, session },
    backendPid: backend?.pid ?? 0,
    takeStatements: () => log.take(),
    async close() {
      await checks.close();
      await session.end();
    },
  };
}
