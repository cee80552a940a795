import type { Opening } from "../decide/window.ts";

/** Asking more often helps nobody, and device protocols carry the time as HH:MM:SS below 24 hours. */
const LEAST_SECONDS = 30;
const MOST_SECONDS = 86_399;

/** What a device's slot is derived from. */
export interface SlotOf {
  /** Its public id. */
  readonly deviceId: string;
  readonly intervalSeconds: number;
  readonly now: Date;
}

/**
 * The seconds until a device's next slot: each device has its own moment within the product's interval, the same for
 * ever. Devices that come back together after an outage are so spread over one interval, and stay spread.
 *
 * A slot that is nearer than 30 s is passed over for the next one: a device whose timer runs a little fast would
 * otherwise ask twice in every interval.
 */
export function secondsToSlot(input: SlotOf): number {
  const { intervalSeconds, now } = input;
  const phase = hash(input.deviceId) % intervalSeconds;
  const elapsed = (now.getTime() / 1000) % intervalSeconds;
  const wait = (phase - elapsed + intervalSeconds) % intervalSeconds;
  const seconds = Math.ceil(wait < LEAST_SECONDS ? wait + intervalSeconds : wait);
  return Math.min(seconds, MOST_SECONDS);
}

/**
 * When a device is to ask again that gets something only later: at its slot where that is before the opening or within it,
 * else at a moment of its own in the first half of the time that is open, so that it has the other half to begin. Whoever
 * follows these hints is there within every opening that lasts two minutes or more.
 */
export function secondsToOpening(input: SlotOf, { opensAt, closesAt }: Opening): number {
  const seconds = secondsToSlot(input);
  const slot = input.now.getTime() + seconds * 1000;
  if (slot < opensAt.getTime() || (closesAt !== undefined && slot < closesAt.getTime())) return seconds;
  const openSeconds = closesAt === undefined ? 0 : (closesAt.getTime() - opensAt.getTime()) / 1000;
  const spread = hash(input.deviceId) % Math.max(1, Math.min(openSeconds / 2, input.intervalSeconds));
  const wait = Math.ceil((opensAt.getTime() - input.now.getTime()) / 1000 + spread);
  return Math.min(Math.max(wait, LEAST_SECONDS), MOST_SECONDS);
}

/** FNV-1a in 32 bits: even enough to spread a fleet, and far cheaper than a digest on every check. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  return value >>> 0;
}
