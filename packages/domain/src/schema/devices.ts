import { sql } from "drizzle-orm";
import { boolean, check, index, jsonb, pgTable, text, unique, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import { DEVICE_ORIGINS } from "../vocabulary.ts";
import { bytes, internalId, internalRef, moment, oneOf } from "./columns.ts";
import { products } from "./products.ts";

/** What operators and gateways know about a device, by name: what the attribute filters of rollouts look at. */
export type DeviceAttributes = Readonly<Record<string, string | number | boolean>>;

/** That a device consents to everything it is offered, as whoever said so put it. */
export interface AutoConfirm {
  readonly initiator: string | null;
  readonly remark: string | null;
  /** ISO 8601, by the service's clock. */
  readonly activatedAt: string;
}

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
    /** None: it has no token of its own and asks through a gateway. */
    tokenHash: bytes("token_hash"),
    /** The token before the newest rotation, which is taken as well until then, by the database's clock. */
    previousTokenHash: bytes("previous_token_hash"),
    previousTokenValidUntil: moment("previous_token_valid_until"),
    channel: text("channel").notNull(),
    hardwareRevision: text("hardware_revision"),
    /** In no order, each once. */
    groups: text("groups").array().notNull().default(sql`'{}'`),
    attributes: jsonb("attributes").$type<DeviceAttributes>().notNull().default({}),
    /** When it last told them of its own accord, by the database's clock; none: never, so that it is asked to. */
    attributesToldAt: moment("attributes_told_at"),
    /** None: it is asked before each update whose rollout requires its consent. */
    autoConfirm: jsonb("auto_confirm").$type<AutoConfirm>(),
    /** Where its maintenance windows are: an IANA name; none: the product's. */
    timeZone: text("time_zone"),
    /** What the device said last that it runs: the truth. */
    reportedVersion: text("reported_version"),
    /** The last install that was confirmed; used only while the device reports no version. */
    confirmedVersion: text("confirmed_version"),
    blocked: boolean("blocked").notNull().default(false),
    /** Why, in the operator's words; none where it is not blocked. */
    blockedReason: text("blocked_reason"),
    registeredBy: text("registered_by", { enum: DEVICE_ORIGINS }).notNull().default("operator"),
    /** Written in batches and without an index, so that the update stays within its page. */
    lastSeenAt: moment("last_seen_at"),
    createdAt: moment("created_at").notNull().defaultNow(),
  },
  (table) => [
    unique("devices_public_id_unique").on(table.publicId),
    unique("devices_token_hash_unique").on(table.tokenHash),
    uniqueIndex("devices_previous_token_hash_unique")
      .on(table.previousTokenHash)
      .where(sql`${table.previousTokenHash} is not null`),
    // The serial first: one index serves the look-up within a product and the one across products.
    unique("devices_serial_product_id_unique").on(table.serial, table.productId),
    // For a serial's beginning, byte by byte: the one above is in the order of the database's language.
    index("devices_product_id_serial_c_index").on(table.productId, sql`(${table.serial} collate "C")`),
    index("devices_product_id_id_index").on(table.productId, table.id),
    // The version that a device runs as far as it is known: the same expression as in the figures.
    index("devices_product_id_version_id_index").on(
      table.productId,
      sql`coalesce(${table.reportedVersion}, ${table.confirmedVersion})`,
      table.id,
    ),
    index("devices_product_id_channel_id_index").on(table.productId, table.channel, table.id),
    // Few are blocked, and those that are not are found on any way.
    index("devices_blocked_id_index").on(table.id).where(sql`${table.blocked}`),
    index("devices_groups_index").using("gin", table.groups),
    index("devices_attributes_index").using("gin", table.attributes.op("jsonb_path_ops")),
    check("devices_token_hash_check", sql`octet_length(${table.tokenHash}) = 32`),
    check("devices_previous_token_hash_check", sql`octet_length(${table.previousTokenHash}) = 32`),
    check(
      "devices_previous_token_valid_until_check",
      sql`(${table.previousTokenHash} is null) = (${table.previousTokenValidUntil} is null)`,
    ),
    check("devices_attributes_check", sql`jsonb_typeof(${table.attributes}) = 'object'`),
    check("devices_registered_by_check", oneOf(table.registeredBy, DEVICE_ORIGINS)),
  ],
);
