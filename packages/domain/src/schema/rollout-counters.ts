import { sql } from "drizzle-orm";
import { bigint, check, index, integer, pgTable, text } from "drizzle-orm/pg-core";
import { THRESHOLDS } from "../vocabulary.ts";
import { internalRef, moment, oneOf } from "./columns.ts";
import { products } from "./products.ts";
import { rollouts } from "./rollouts.ts";

/**
 * The places and outcomes of a rollout that has a cap, a threshold or phases, in a narrow row of its own; other rollouts
 * have none, so that they have no row that everybody waits for. Its lock is the last one that a transaction takes; of
 * several rows, in the order of their ids.
 */
export const rolloutCounters = pgTable(
  "rollout_counters",
  {
    rolloutId: internalRef("rollout_id")
      .primaryKey()
      .references(() => rollouts.id),
    /**
     * The rollout's product while it is running, and so while its places matter: every check of the product's devices reads
     * these rows, and finds the few of them by this. None: it gives no places now.
     */
    productId: internalRef("product_id").references(() => products.id),
    /** The rollout's revision: a place is given only to a decision that was made on it. */
    revision: bigint("revision", { mode: "bigint" }).notNull(),
    /** Attempts of the rollout that are open now; `max_concurrent` bounds it. */
    live: integer("live").notNull().default(0),
    /** Devices that ever had an attempt in the rollout; `max_total` bounds it. It never shrinks. */
    granted: integer("granted").notNull().default(0),
    /** Attempts that succeeded; late successes too. */
    succeeded: integer("succeeded").notNull().default(0),
    /** Attempts that failed or timed out; a late success takes its timeout back. */
    failed: integer("failed").notNull().default(0),
    /** The two above when the rollout was started, was resumed or came to its phase: its conditions see what came since. */
    succeededBefore: integer("succeeded_before").notNull().default(0),
    failedBefore: integer("failed_before").notNull().default(0),
    /**
     * The threshold that was reached, written with the outcome that reached it. From then on no place is given, although
     * the rollout itself is paused by a later transaction, which has to lock the product first. Resuming clears it.
     */
    reached: text("reached", { enum: THRESHOLDS }),
    reachedAt: moment("reached_at"),
  },
  (table) => [
    index("rollout_counters_product_id_index").on(table.productId),
    check("rollout_counters_live_check", sql`${table.live} >= 0`),
    check("rollout_counters_granted_check", sql`${table.granted} >= 0`),
    check("rollout_counters_succeeded_check", sql`${table.succeeded} >= 0`),
    check("rollout_counters_failed_check", sql`${table.failed} >= 0`),
    check("rollout_counters_reached_check", oneOf(table.reached, THRESHOLDS)),
    check("rollout_counters_reached_at_check", sql`(${table.reached} is null) = (${table.reachedAt} is null)`),
  ],
);
