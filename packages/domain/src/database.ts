import { fileURLToPath } from "node:url";
import type { PgDatabase, PgQueryResultHKT } from "drizzle-orm/pg-core";
import type * as schema from "./schema/index.ts";

/**
 * What every function of the domain works on: an open database or a transaction of it, by whatever drizzle driver the
 * application has chosen. Two rules keep all drivers equal:
 * - inside `db.transaction(async (tx) => …)` only `tx` is used: PGlite has one session, and the outer `db` would wait for
 *   its own transaction for ever;
 * - statements are made by the query builder, never by `db.execute`, whose result has another shape in each driver.
 */
export type Database = PgDatabase<PgQueryResultHKT, typeof schema>;

/** The folder of the generated migrations, for drizzle's migrator. The path is right from `src` and from `dist`. */
export const migrationsFolder: string = fileURLToPath(new URL("../migrations", import.meta.url));
