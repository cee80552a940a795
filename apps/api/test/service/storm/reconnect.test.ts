import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { seededRandom, seedOfRun } from "./seeded-random.ts";
import { BIN_MS, type PollPolicy, servicePolicy, simulateFleet } from "./simulated-fleet.ts";

const DEVICES = 50_000;
const INTERVAL_SECONDS = 300;
const MINUTES = 20;
/** The checks of 10 s when every device comes once in an interval. */
const STEADY = (DEVICES / INTERVAL_SECONDS) * (BIN_MS / 1000);

/** Twenty minutes of a fleet that comes back within 10 s, as after an outage. */
function reconnect(options: { readonly policy: PollPolicy; readonly checksPerSecond: number }) {
  const seed = seedOfRun();
  const random = seededRandom(seed);
  const devices = Array.from({ length: DEVICES }, () => ({ id: randomUUID(), comesAtMs: random.unit() * 10_000 }));
  const epochMs = 1_750_000_000_000 + random.below(INTERVAL_SECONDS * 1000);
  const fleet = simulateFleet(devices, { ...options, untilMs: MINUTES * 60_000, epochMs });
  const fromMinute5 = fleet.accepted.slice(300_000 / BIN_MS);
  const most = Math.max(...fromMinute5);
  console.log(
    `${options.checksPerSecond} checks a second, STORM_SEED=${seed}: ${fleet.turnedAway} turned away; accepted in 10 s: ` +
      `first minute ${fleet.accepted.slice(0, 6).join(" ")}, from minute 5 on at most ${most} = ` +
      `${(most / STEADY).toFixed(2)} × steady; longest without an answer ${fleet.longestUnservedSeconds} s`,
  );
  return { ...fleet, fromMinute5, most };
}

describe("a fleet of 50 000 that comes back within 10 s, at an interval of 5 minutes", () => {
  test.each([400, 1_500, 5_000])(
    "by a service of %i checks a second: from minute 5 on at most twice the steady load, and nobody waits for two intervals",
    (checksPerSecond) => {
      const policy = servicePolicy({ intervalSeconds: INTERVAL_SECONDS });
      const { most, fromMinute5, longestUnservedSeconds } = reconnect({ policy, checksPerSecond });
      expect(most).toBeLessThanOrEqual(2 * STEADY);
      // They do come: it is the load of the whole fleet that is spread.
      expect(Math.min(...fromMinute5)).toBeGreaterThan(0.5 * STEADY);
      expect(longestUnservedSeconds).toBeLessThanOrEqual(2 * INTERVAL_SECONDS);
    },
  );

  test("with a period from each answer in the place of the slot, the herd stays one: the tests above can fail", () => {
    const policy = servicePolicy({ intervalSeconds: INTERVAL_SECONDS });
    const { most } = reconnect({ policy: { ...policy, served: () => INTERVAL_SECONDS }, checksPerSecond: 5_000 });
    expect(most).toBeGreaterThan(2 * STEADY);
  });

  test("with the same short wait for all that are turned away, they come back as one, and are turned away again", () => {
    const policy = servicePolicy({ intervalSeconds: INTERVAL_SECONDS });
    const options = { policy: { ...policy, turnedAway: () => 15 }, checksPerSecond: 400 };
    expect(reconnect(options).turnedAway).toBeGreaterThan(2 * DEVICES);
  });
});
