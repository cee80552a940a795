import { createHash } from "node:crypto";

/** The number of buckets: hundredths of a percent. */
const BUCKETS = 10_000;

/**
 * A device's place in a rollout, 0 … 9999: the first 32 bits of SHA-256(`rollout id:device id`) mod 10 000. It is the
 * same at every check, and independent from rollout to rollout, so that not always the same devices go first.
 */
export function bucketOf(rolloutId: bigint, deviceId: bigint): number {
  return createHash("sha256").update(`${rolloutId}:${deviceId}`).digest().readUInt32BE(0) % BUCKETS;
}
