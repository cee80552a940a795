import { LockLostError, LockOptionsError } from "./errors.ts";
import type { Lease } from "./lease.ts";

/**
 * Runs a write that its database refuses once a newer holder of the lock has written: the guard that stays right when a
 * process is stopped past the end of its lease and goes on.
 *
 * `write` gets the lease's fencing token and gives the number of rows it changed. It must store the token with what it
 * writes, and touch only rows whose stored token is not larger: `update … set …, fence = :token where … and fence <=
 * :token`. Gives that number.
 *
 * @throws LockLostError when the lease has ended before the write, or when no row was changed: then a newer holder has
 * written already, or the row does not exist.
 * @throws LockOptionsError when the lock was made without `fencing: true`.
 */
export async function fencedWrite(
  lease: Lease,
  write: (fencingToken: bigint) => number | PromiseLike<number>,
): Promise<number> {
  lease.assertHeld();
  const { key, fencingToken } = lease;
  if (fencingToken === undefined) {
    throw new LockOptionsError({
      option: "fencing",
      value: false,
      expected: "true for a lock that guards writes",
      key,
    });
  }
  const changed = await write(fencingToken);
  if (changed > 0) return changed;
  const reason = "a write guarded by its fencing token changed no row, so a newer holder has written, or there is none";
  throw new LockLostError({ key, reason });
}
