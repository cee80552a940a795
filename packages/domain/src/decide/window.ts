/**
 * The hours in which updates may begin, by the clock on the device's wall: on the days given it opens at `fromMinute`
 * after midnight and closes at `toMinute`; closing at or before the opening is on the next day.
 *
 * Where the clock is put forward over the opening, it opens at the moment when the clock is put forward; a window that
 * lies within the missing hour does not open that day. Where the clock is put back, hours within the window come twice.
 */
export interface MaintenanceWindow {
  /** 1 (Monday) to 7. */
  readonly days: readonly number[];
  /** 0 to 1439. */
  readonly fromMinute: number;
  readonly toMinute: number;
}

/** When updates may begin next, and until when; `undefined`: for good. */
export interface Opening {
  readonly opensAt: Date;
  readonly closesAt: Date | undefined;
}

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;
const WEEK_MINUTES = 7 * DAY_MINUTES;

/** Whether the window is open, or else when it opens next. */
export function windowAt(
  window: MaintenanceWindow,
  { now, timeZone }: { readonly now: Date; readonly timeZone: string },
): "open" | Opening {
  const clock = clockOf(timeZone);
  if (minutesOpen(window, minuteOfWeek(clock, now.getTime())) > 0) return "open";
  let at = Math.floor(now.getTime() / MINUTE_MS) * MINUTE_MS;
  let opensAt: number | undefined;
  while (opensAt === undefined) {
    const expected = at + minutesUntilOpen(window, minuteOfWeek(clock, at)) * MINUTE_MS;
    const shift = firstShift(clock, at, expected);
    // As long as nobody puts the clock forward or back on the way, a walk of so many minutes ends where it should.
    if (shift === undefined) opensAt = expected;
    else if (minutesOpen(window, minuteOfWeek(clock, shift)) > 0) opensAt = shift;
    else at = shift;
  }
  const closesAt = opensAt + minutesOpen(window, minuteOfWeek(clock, opensAt)) * MINUTE_MS;
  return { opensAt: new Date(opensAt), closesAt: new Date(firstClosed(window, clock, { opensAt, closesAt })) };
}

/** Where the clock is put forward or back while the window is open, it closes then at the latest where that closes it. */
function firstClosed(
  window: MaintenanceWindow,
  clock: Clock,
  { opensAt, closesAt }: { readonly opensAt: number; readonly closesAt: number },
): number {
  const shift = firstShift(clock, opensAt, closesAt);
  if (shift === undefined) return closesAt;
  return shift + minutesOpen(window, minuteOfWeek(clock, shift)) * MINUTE_MS;
}

/** How many minutes the window stays open from a minute of the week on; 0: it is closed. At most a week. */
function minutesOpen({ days, fromMinute, toMinute }: MaintenanceWindow, minute: number): number {
  const length = toMinute > fromMinute ? toMinute - fromMinute : toMinute - fromMinute + DAY_MINUTES;
  let open = 0;
  // A window that closes when the next day's opens goes on into it.
  for (let more = true; more && open < WEEK_MINUTES; ) {
    more = false;
    for (const day of days) {
      const since = modulo(minute + open - ((day - 1) * DAY_MINUTES + fromMinute), WEEK_MINUTES);
      if (since >= length) continue;
      open += length - since;
      more = true;
    }
  }
  return Math.min(open, WEEK_MINUTES);
}

function minutesUntilOpen({ days, fromMinute }: MaintenanceWindow, minute: number): number {
  return Math.min(...days.map((day) => modulo((day - 1) * DAY_MINUTES + fromMinute - minute, WEEK_MINUTES)));
}

/** The first moment after `from` and up to `to` at which the clock is put forward or back. */
function firstShift(clock: Clock, from: number, to: number): number | undefined {
  const before = offsetMinutes(clock, from);
  // Clocks are never put forward and back within one day.
  for (let low = from; low < to; low += DAY_MINUTES * MINUTE_MS) {
    let high = Math.min(low + DAY_MINUTES * MINUTE_MS, to);
    if (offsetMinutes(clock, high) === before) continue;
    let last = low;
    while (high - last > MINUTE_MS) {
      const middle = last + Math.floor((high - last) / (2 * MINUTE_MS)) * MINUTE_MS;
      if (offsetMinutes(clock, middle) === before) last = middle;
      else high = middle;
    }
    return high;
  }
  return undefined;
}

function minuteOfWeek(clock: Clock, at: number): number {
  const local = Math.floor(at / MINUTE_MS) + offsetMinutes(clock, at);
  // The epoch's first day was a Thursday, the fourth of its week.
  return modulo(local + 3 * DAY_MINUTES, WEEK_MINUTES);
}

function modulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}

/** Tells the local time of a zone. */
type Clock = Intl.DateTimeFormat;

/** How far the zone's clock is ahead of UTC. */
function offsetMinutes(clock: Clock, at: number): number {
  const parts = Object.fromEntries(clock.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0 } = parts;
  return Math.round(Date.UTC(year, month - 1, day, hour, minute) / MINUTE_MS - Math.floor(at / MINUTE_MS));
}

/** Making one costs far more than asking it; there are a few hundred zones, and names in other cases besides. */
const MAX_CLOCKS = 1_000;
const clocks = new Map<string, Clock>();

/** A zone that this process does not know is taken for UTC: a device's check must not fail by it. */
function clockOf(timeZone: string): Clock {
  const known = clocks.get(timeZone);
  if (known !== undefined) return known;
  const clock = makeClock(timeZone) ?? (makeClock("UTC") as Clock);
  if (clocks.size < MAX_CLOCKS) clocks.set(timeZone, clock);
  return clock;
}

function makeClock(timeZone: string): Clock | undefined {
  try {
    return new Intl.DateTimeFormat("en-US", {
      ...{ timeZone, calendar: "gregory", numberingSystem: "latn", hourCycle: "h23" },
      ...{ year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric" },
    });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
