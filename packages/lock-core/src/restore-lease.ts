import { LockOptionsError } from "./errors.ts";
import { Lease } from "./lease.ts";
import type { LeaseContext } from "./lease-grant.ts";
import type { ResolvedHold } from "./options.ts";
import { parseLease } from "./serialised-lease.ts";

/**
 * The lease that another process gave away, once the store has confirmed it: by setting its end anew in the mode that it
 * was given away in. Asking for the mode, rather than for an extend alone, is what keeps a lease that its giver has
 * demoted since from being taken for an exclusive one.
 *
 * `undefined` when it has ended meanwhile, or when it is to be exclusive and others share the key by now.
 *
 * @throws LockOptionsError when `serialised` is no serialised lease, or the store is one of this process alone.
 * @throws LockStoreError on a fault; the lease stands in the store as it did.
 */
export async function restoreLease(
  serialised: unknown,
  context: Omit<LeaseContext, "fencing">,
): Promise<Lease | undefined> {
  const { key, owner, mode, fencingToken } = parseLease(serialised);
  const { store, clock, ttlMs } = context;
  if (store.reach === "process") {
    const expected = "one that other processes share: the leases of this one end with their process";
    throw new LockOptionsError({ option: "store", value: store.name, expected, key });
  }
  const fencing = fencingToken !== undefined;
  if (fencing) store.checkFencing(key);
  const owned = { key, owner };
  const sentAt = clock.now();
  const claimed = new Lease({
    owned,
    context: { ...context, fencing, hold: NO_HOLD },
    sentAt,
    deadline: sentAt + ttlMs,
    mode: store.sharesLocks ? mode : "exclusive",
    fencingToken: fencing ? BigInt(fencingToken) : undefined,
  });
  const outcome = mode === "exclusive" ? await claimed.promote() : await claimed.demote();
  if (outcome !== "promoted" && outcome !== "demoted") return undefined;
  return new Lease({
    owned,
    context: { ...context, fencing },
    sentAt,
    deadline: clock.now() + claimed.remainingMs(),
    mode: claimed.mode,
    fencingToken: claimed.fencingToken,
  });
}

/** A lease that is not confirmed yet must not be extended by itself. */
const NO_HOLD: ResolvedHold = { autoExtend: false, maxHoldMs: Number.POSITIVE_INFINITY };
