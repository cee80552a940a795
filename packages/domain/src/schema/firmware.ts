import { sql } from "drizzle-orm";
import { bigint, check, index, pgTable, text, unique, uuid } from "drizzle-orm/pg-core";
import { FIRMWARE_STATES } from "../vocabulary.ts";
import { bytes, internalId, internalRef, moment, oneOf } from "./columns.ts";
import { products } from "./products.ts";

/** A version of a product's software, with the facts of its one artifact. */
export const firmware = pgTable(
  "firmware",
  {
    id: internalId("id").primaryKey(),
    publicId: uuid("public_id").notNull(),
    productId: internalRef("product_id")
      .notNull()
      .references(() => products.id),
    /** As the operator wrote it; this is what devices see. */
    version: text("version").notNull(),
    /** What two spellings of one version have in common; unique within the product, for ever. */
    canonicalVersion: text("canonical_version").notNull(),
    state: text("state", { enum: FIRMWARE_STATES }).notNull().default("draft"),
    /** The hardware it runs on; empty: any. */
    hardwareRevisions: text("hardware_revisions").array().notNull().default(sql`'{}'`),
    /** The least version a device must run before it may take this one, as the operator wrote it. */
    requiresVersion: text("requires_version"),
    sizeBytes: bigint("size_bytes", { mode: "number" }).notNull(),
    sha256: text("sha256").notNull(),
    /** Known of every file that is stored here; of one on another host where the operator has given them. */
    sha1: text("sha1"),
    md5: text("md5"),
    /** Where the file lies on another host, which devices are sent to; none: it is stored here, by its SHA-256. */
    sourceUrl: text("source_url"),
    /** The detached Ed25519 signature over the firmware's manifest, verified before it was written. */
    signature: bytes("signature"),
    /** The product's public key that the signature was verified with. */
    signatureKey: bytes("signature_key"),
    fileName: text("file_name").notNull(),
    contentType: text("content_type").notNull(),
    createdAt: moment("created_at").notNull().defaultNow(),
    releasedAt: moment("released_at"),
    withdrawnAt: moment("withdrawn_at"),
  },
  (table) => [
    unique("firmware_public_id_unique").on(table.publicId),
    unique("firmware_product_id_canonical_version_unique").on(table.productId, table.canonicalVersion),
    index("firmware_product_id_id_index").on(table.productId, table.id),
    // What the artifact store looks up before it deletes a file.
    index("firmware_sha256_index").on(table.sha256),
    check("firmware_state_check", oneOf(table.state, FIRMWARE_STATES)),
    check("firmware_size_bytes_check", sql`${table.sizeBytes} > 0`),
    check("firmware_sha256_check", sql`${table.sha256} ~ '^[0-9a-f]{64}$'`),
    check("firmware_sha1_check", sql`${table.sha1} ~ '^[0-9a-f]{40}$'`),
    check("firmware_md5_check", sql`${table.md5} ~ '^[0-9a-f]{32}$'`),
    check(
      "firmware_stored_hashes_check",
      sql`${table.sourceUrl} is not null or (${table.sha1} is not null and ${table.md5} is not null)`,
    ),
    check("firmware_signature_check", sql`octet_length(${table.signature}) = 64`),
    check("firmware_signature_key_check", sql`octet_length(${table.signatureKey}) = 32`),
    check(
      "firmware_signature_signature_key_check",
      sql`(${table.signature} is null) = (${table.signatureKey} is null)`,
    ),
  ],
);
