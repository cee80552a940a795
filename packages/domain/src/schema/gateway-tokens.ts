import { sql } from "drizzle-orm";
import { check, index, pgTable, text, unique, uuid } from "drizzle-orm/pg-core";
import { bytes, internalId, internalRef, moment } from "./columns.ts";
import { products } from "./products.ts";

/**
 * A token that many devices share: it registers unknown serials in its product and channel, and serves devices that have
 * no token of their own. Revoked ones are kept.
 */
export const gatewayTokens = pgTable(
  "gateway_tokens",
  {
    id: internalId("id").primaryKey(),
    publicId: uuid("public_id").notNull(),
    productId: internalRef("product_id")
      .notNull()
      .references(() => products.id),
    /** The channel of the devices that it registers. */
    channel: text("channel").notNull(),
    name: text("name").notNull(),
    tokenHash: bytes("token_hash").notNull(),
    createdAt: moment("created_at").notNull().defaultNow(),
    revokedAt: moment("revoked_at"),
  },
  (table) => [
    unique("gateway_tokens_public_id_unique").on(table.publicId),
    unique("gateway_tokens_token_hash_unique").on(table.tokenHash),
    index("gateway_tokens_product_id_id_index").on(table.productId, table.id),
    check("gateway_tokens_token_hash_check", sql`octet_length(${table.tokenHash}) = 32`),
  ],
);
