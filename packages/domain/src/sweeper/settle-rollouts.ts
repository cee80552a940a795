import { findDue, settleRollout } from "../rollouts/settle-rollout.ts";
import type { BackgroundJob } from "./background-job.ts";

/**
 * Pauses rollouts that have reached a threshold, and takes to their next phase those that have met the conditions of
 * theirs: one in each transaction, since each locks its product.
 */
export function settleRollouts({ intervalMs }: { readonly intervalMs: number }): BackgroundJob {
  return {
    name: "settle-rollouts",
    intervalMs,
    async runBatch({ tx }) {
      const due = await findDue(tx);
      const [first] = due;
      const settled = first !== undefined && (await settleRollout(tx, first.rollout.publicId));
      return { more: due.length > 1, rows: settled ? 1 : 0 };
    },
  };
}
