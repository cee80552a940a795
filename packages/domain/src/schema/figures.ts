import { sql } from "drizzle-orm";
import { bigint, check, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { FIGURE_KINDS } from "../vocabulary.ts";
import { internalRef, oneOf } from "./columns.ts";

/** What is counted: the same three columns in both tables. */
const counted = {
  kind: text("kind", { enum: FIGURE_KINDS }).notNull(),
  /** The rollout, or the product. */
  ownerId: internalRef("owner_id").notNull(),
  /**
   * The state; `firmware:state` of a step, with the firmware's internal id; the version, empty where none is known; or
   * `state:code:message` of a failure, whose code and message may be empty. The message's digits are `#`, so that a reason
   * is one, whatever address or percentage it names.
   */
  key: text("key").notNull(),
};

/** Counts up to the newest deltas that were folded in. The truth is the sum with those of `figure_deltas`. */
export const figures = pgTable(
  "figures",
  { ...counted, count: bigint("count", { mode: "number" }).notNull() },
  (table) => [
    primaryKey({ name: "figures_pkey", columns: [table.kind, table.ownerId, table.key] }),
    check("figures_kind_check", oneOf(table.kind, FIGURE_KINDS)),
  ],
);

/**
 * Changes of counts that are not folded into `figures` yet. Triggers on `upgrade_attempts` and `devices` add the rows, in
 * the transaction of the change: nobody waits for anybody, and no writer can forget them.
 */
export const figureDeltas = pgTable(
  "figure_deltas",
  {
    ...counted,
    id: bigint("id", { mode: "bigint" }).notNull().generatedAlwaysAsIdentity(),
    delta: integer("delta").notNull(),
  },
  (table) => [
    // The owner first: one index finds what is to be added to a figure, and what is to be folded.
    primaryKey({ name: "figure_deltas_pkey", columns: [table.kind, table.ownerId, table.id] }),
    check("figure_deltas_delta_check", sql`${table.delta} <> 0`),
  ],
);
