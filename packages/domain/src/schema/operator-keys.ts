import { sql } from "drizzle-orm";
import { check, pgTable, text, unique, uuid } from "drizzle-orm/pg-core";
import { bytes, internalId, moment } from "./columns.ts";

/** A key by which an operator, or a program of the operator's, may use the operators' API. Revoked ones are kept. */
export const operatorKeys = pgTable(
  "operator_keys",
  {
    id: internalId("id").primaryKey(),
    publicId: uuid("public_id").notNull(),
    name: text("name").notNull(),
    keyHash: bytes("key_hash").notNull(),
    createdAt: moment("created_at").notNull().defaultNow(),
    revokedAt: moment("revoked_at"),
  },
  (table) => [
    unique("operator_keys_public_id_unique").on(table.publicId),
    unique("operator_keys_key_hash_unique").on(table.keyHash),
    check("operator_keys_key_hash_check", sql`octet_length(${table.keyHash}) = 32`),
  ],
);
