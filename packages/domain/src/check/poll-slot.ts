/** Asking more often helps nobody, and device protocols carry the time as HH:MM:SS below 24 hours. */
const LEAST_SECONDS = 30;
const MOST_SECONDS = 86_399;

/**
 * The seconds until a device's next slot: each device has its own moment within the product's interval, the same for
 * ever. Devices that come back together after an outage are so spread over one interval, and stay spread.
 *
 * A slot that is nearer than 30 s is passed over for the next one: a device whose timer runs a little fast would
 * otherwise ask twice in every interval.
 */
export function secondsToSlot(input: {
  /** What the slot is derived from: the device's public id. */
  readonly deviceId: string;
  readonly intervalSeconds: number;
  readonly now: Date;
}): number {
  const { intervalSeconds, now } = input;
  const phase = hash(input.deviceId) % intervalSeconds;
  const elapsed = (now.getTime() / 1000) % intervalSeconds;
  const wait = (phase - elapsed + intervalSeconds) % intervalSeconds;
  const seconds = Math.ceil(wait < LEAST_SECONDS ? wait + intervalSeconds : wait);
  return Math.min(seconds, MOST_SECONDS);
}

/** FNV-1a in 32 bits: even enough to spread a fleet, and far cheaper than a digest on every check. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  return value >>> 0;
}
