import { secondsToSlot } from "@ota/domain";
import { checkRoute } from "../../../src/device/check.ts";
import type { Exchange } from "../../../src/http/exchange.ts";
import { HttpProblem } from "../../../src/http/problems.ts";
import type { OverloadCause } from "../../../src/limits/events.ts";
import { createGate } from "../../../src/limits/gate.ts";
import { StandingDelay } from "../../../src/limits/standing-delay.ts";

/** When devices are told to ask again. */
export interface PollPolicy {
  /** After an answer. */
  served(deviceId: string, now: Date): number;
  /** After being turned away for load. */
  turnedAway(): number;
}

/** What the service itself tells them: its own slots, and the `Retry-After` of its own gate. */
export function servicePolicy(options: { readonly intervalSeconds: number }): PollPolicy {
  const { intervalSeconds } = options;
  const cause: OverloadCause = "database";
  const gate = createGate({
    overload: { cause, turnedAway() {}, stop() {} },
    ...{ checks: undefined, failures: undefined, addressOf: () => undefined },
    ...{ spreadSeconds: intervalSeconds, observe: () => {} },
  });
  // The one thing that the gate asks of a request which it turns away for load.
  const exchange = { keepQuiet() {} } as unknown as Exchange;
  return {
    served: (deviceId, now) => secondsToSlot({ deviceId, intervalSeconds, now }),
    turnedAway() {
      try {
        gate.enter(checkRoute, exchange);
      } catch (error) {
        if (error instanceof HttpProblem) return Number(error.headers["Retry-After"]);
        throw error;
      }
      throw new Error("The gate has let a check in although the service is overloaded.");
    },
  };
}

/** A device that asks at a time of the simulation. */
export interface ComingDevice {
  readonly id: string;
  readonly comesAtMs: number;
}

/** What a simulation has seen. */
export interface SimulatedFleet {
  /** The checks that were accepted in each 10 s from 0 on. */
  readonly accepted: readonly number[];
  readonly turnedAway: number;
  /** The longest time that a device was without an answer, from when it first came or was last answered to its next answer or the end. */
  readonly longestUnservedSeconds: number;
}

const TICK_MS = 100;
export const BIN_MS = 10_000;
/** The service's own default for the database's delay. */
const OVERLOAD = { limitMs: 2_000, enterMs: 1_000, leaveMs: 1_000 };

/**
 * Lets a fleet live on simulated time against a service that answers so many checks a second in the order they came, and
 * turns checks away for load by the rule that the real one has. Devices come when they are told to.
 */
export function simulateFleet(
  devices: readonly ComingDevice[],
  options: {
    readonly policy: PollPolicy;
    readonly checksPerSecond: number;
    readonly fromMs?: number;
    readonly untilMs: number;
    /** What the clock shows at 0. */
    readonly epochMs: number;
  },
): SimulatedFleet {
  const { policy, checksPerSecond, fromMs = 0, untilMs, epochMs } = options;
  const due = new Map<number, number[]>();
  const comesAt = (device: number, atMs: number): void => {
    const tick = Math.max(Math.floor(atMs / TICK_MS), Math.floor(fromMs / TICK_MS));
    const others = due.get(tick);
    if (others === undefined) due.set(tick, [device]);
    else others.push(device);
  };
  const unservedSince = devices.map(({ comesAtMs }) => comesAtMs);
  for (const [device, { comesAtMs }] of devices.entries()) comesAt(device, comesAtMs);

  const accepted = new Array<number>(Math.ceil(untilMs / BIN_MS)).fill(0);
  const delay = new StandingDelay(OVERLOAD);
  const waiting: number[] = [];
  let answered = 0;
  let mayAnswer = 0;
  let turnedAway = 0;
  let longestUnservedMs = 0;
  for (let nowMs = fromMs; nowMs < untilMs; nowMs += TICK_MS) {
    for (const device of due.get(nowMs / TICK_MS) ?? []) {
      if (delay.stands) {
        turnedAway += 1;
        comesAt(device, nowMs + policy.turnedAway() * 1000);
      } else {
        const bin = Math.floor(nowMs / BIN_MS);
        accepted[bin] = (accepted[bin] ?? 0) + 1;
        waiting.push(device);
      }
    }
    due.delete(nowMs / TICK_MS);
    // What a second of idleness has not used is gone.
    mayAnswer = Math.min(mayAnswer + (checksPerSecond * TICK_MS) / 1000, checksPerSecond);
    for (; mayAnswer >= 1 && answered < waiting.length; mayAnswer -= 1, answered += 1) {
      const device = waiting[answered] as number;
      longestUnservedMs = Math.max(longestUnservedMs, nowMs - (unservedSince[device] as number));
      unservedSince[device] = nowMs;
      const { id } = devices[device] as ComingDevice;
      comesAt(device, nowMs + policy.served(id, new Date(epochMs + nowMs)) * 1000);
    }
    delay.sample(((waiting.length - answered) / checksPerSecond) * 1000, nowMs);
  }
  for (const since of unservedSince) longestUnservedMs = Math.max(longestUnservedMs, untilMs - since);
  return { accepted, turnedAway, longestUnservedSeconds: longestUnservedMs / 1000 };
}
