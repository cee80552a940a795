import { sql } from "drizzle-orm";
import { boolean, check, pgTable, uuid } from "drizzle-orm/pg-core";
import { moment } from "./columns.ts";

/** One row: which installation this database belongs to. The artifact folder carries the same id. */
export const installation = pgTable(
  "installation",
  {
    /** Always true: as the primary key it allows one row. */
    only: boolean("only").primaryKey().default(true),
    publicId: uuid("public_id").notNull(),
    createdAt: moment("created_at").notNull().defaultNow(),
  },
  (table) => [check("installation_only_check", sql`${table.only}`)],
);
