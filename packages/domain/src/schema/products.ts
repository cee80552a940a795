import { sql } from "drizzle-orm";
import { bigint, check, integer, pgTable, text, unique } from "drizzle-orm/pg-core";
import { CONFIRM_BY, VERSION_SCHEMES } from "../vocabulary.ts";
import { internalId, moment, oneOf } from "./columns.ts";

/** A line of devices that share firmware. Its name is its public id and never changes. */
export const products = pgTable(
  "products",
  {
    id: internalId("id").primaryKey(),
    name: text("name").notNull(),
    versionScheme: text("version_scheme", { enum: VERSION_SCHEMES }).notNull(),
    confirmBy: text("confirm_by", { enum: CONFIRM_BY }).notNull(),
    pollIntervalSeconds: integer("poll_interval_seconds").notNull(),
    /** Grows with every change of what the product's devices can be offered; processes key their cached catalog by it. */
    catalogRevision: bigint("catalog_revision", { mode: "bigint" }).notNull().default(sql`0`),
    createdAt: moment("created_at").notNull().defaultNow(),
  },
  (table) => [
    unique("products_name_unique").on(table.name),
    check("products_name_check", sql`${table.name} ~ '^[a-z0-9][a-z0-9-]{0,62}$'`),
    check("products_version_scheme_check", oneOf(table.versionScheme, VERSION_SCHEMES)),
    check("products_confirm_by_check", oneOf(table.confirmBy, CONFIRM_BY)),
    // Device protocols carry the interval as HH:MM:SS below 24 hours.
    check("products_poll_interval_seconds_check", sql`${table.pollIntervalSeconds} between 30 and 86399`),
  ],
);
