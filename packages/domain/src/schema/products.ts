import { sql } from "drizzle-orm";
import { bigint, check, integer, pgTable, smallint, text, unique } from "drizzle-orm/pg-core";
import { CONFIRM_BY, VERSION_SCHEMES } from "../vocabulary.ts";
import { bytes, internalId, moment, oneOf, silenceTimeouts } from "./columns.ts";

/** A line of devices that share firmware. Its name is its public id and never changes. */
export const products = pgTable(
  "products",
  {
    id: internalId("id").primaryKey(),
    name: text("name").notNull(),
    versionScheme: text("version_scheme", { enum: VERSION_SCHEMES }).notNull(),
    confirmBy: text("confirm_by", { enum: CONFIRM_BY }).notNull(),
    pollIntervalSeconds: integer("poll_interval_seconds").notNull(),
    /** Where a device is that has no time zone of its own: an IANA name. */
    timeZone: text("time_zone").notNull().default("UTC"),
    /** How often a firmware is tried on a device until an operator resets the record. */
    maxAttempts: smallint("max_attempts").notNull().default(3),
    /** The pause after a record's first attempt; it doubles with each further one. */
    backoffSeconds: integer("backoff_seconds").notNull().default(600),
    /** When silent attempts are ended, where the rollout does not say; what is left out is the service's default. */
    timeoutsSeconds: silenceTimeouts("timeouts_seconds").notNull().default({}),
    /** The raw Ed25519 public key of the product's firmware: while there is one, only signed firmware is released. */
    signingPublicKey: bytes("signing_public_key"),
    /** By which names DDI devices tell their hardware and their version among their attributes; none: they do not. */
    hardwareAttribute: text("hardware_attribute"),
    versionAttribute: text("version_attribute"),
    /** Grows with every change of what the product's devices can be offered; processes key their cached catalog by it. */
    catalogRevision: bigint("catalog_revision", { mode: "bigint" }).notNull().default(sql`0`),
    createdAt: moment("created_at").notNull().defaultNow(),
  },
  (table) => [
    unique("products_name_unique").on(table.name),
    check("products_name_check", sql`${table.name} ~ '^[a-z0-9][a-z0-9-]{0,62}$'`),
    check("products_version_scheme_check", oneOf(table.versionScheme, VERSION_SCHEMES)),
    check("products_confirm_by_check", oneOf(table.confirmBy, CONFIRM_BY)),
    check("products_max_attempts_check", sql`${table.maxAttempts} > 0`),
    check("products_backoff_seconds_check", sql`${table.backoffSeconds} >= 0`),
    check("products_timeouts_seconds_check", sql`jsonb_typeof(${table.timeoutsSeconds}) = 'object'`),
    check("products_signing_public_key_check", sql`octet_length(${table.signingPublicKey}) = 32`),
    // Device protocols carry the interval as HH:MM:SS below 24 hours.
    check("products_poll_interval_seconds_check", sql`${table.pollIntervalSeconds} between 30 and 86399`),
  ],
);
