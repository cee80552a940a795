import { sql } from "drizzle-orm";
import { boolean, check, index, pgTable, text, unique, uuid } from "drizzle-orm/pg-core";
import { bytes, internalId, internalRef, moment } from "./columns.ts";
import { products } from "./products.ts";

/** One installation, known by its serial within its product. */
export const devices = pgTable(
  "devices",
  {
    id: internalId("id").primaryKey(),
    publicId: uuid("public_id").notNull(),
    productId: internalRef("product_id")
      .notNull()
      .references(() => products.id),
    serial: text("serial").notNull(),
    tokenHash: bytes("token_hash").notNull(),
    channel: text("channel").notNull(),
    hardwareRevision: text("hardware_revision"),
    /** What the device said last that it runs: the truth. */
    reportedVersion: text("reported_version"),
    /** The last install that was confirmed; used only while the device reports no version. */
    confirmedVersion: text("confirmed_version"),
    blocked: boolean("blocked").notNull().default(false),
    /** Written in batches and without an index, so that the update stays within its page. */
    lastSeenAt: moment("last_seen_at"),
    createdAt: moment("created_at").notNull().defaultNow(),
  },
  (table) => [
    unique("devices_public_id_unique").on(table.publicId),
    unique("devices_token_hash_unique").on(table.tokenHash),
    // The serial first: one index serves the look-up within a product and the one across products.
    unique("devices_serial_product_id_unique").on(table.serial, table.productId),
    index("devices_product_id_id_index").on(table.productId, table.id),
    check("devices_token_hash_check", sql`octet_length(${table.tokenHash}) = 32`),
  ],
);
