import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type MaintenanceWindow, windowAt } from "../../src/decide/window.ts";

const EVERY_DAY = [1, 2, 3, 4, 5, 6, 7];
const MINUTE_MS = 60_000;

/** `HH:MM` to `HH:MM`. */
function daily(from: string, to: string, days: readonly number[] = EVERY_DAY): MaintenanceWindow {
  const minute = (text: string) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3));
  return { days, fromMinute: minute(from), toMinute: minute(to) };
}

function at(window: MaintenanceWindow, now: string, timeZone = "Europe/Berlin") {
  const found = windowAt(window, { now: new Date(now), timeZone });
  return found === "open" ? found : `${found.opensAt.toISOString()} ${found.closesAt?.toISOString()}`;
}

describe("a maintenance window", () => {
  it("is open from its first minute on, and closed from its last one on", () => {
    const window = daily("02:00", "04:00");
    expect(at(window, "2024-05-01T23:59:59.999Z")).toBe("2024-05-02T00:00:00.000Z 2024-05-02T02:00:00.000Z");
    expect(at(window, "2024-05-02T00:00:00Z")).toBe("open");
    expect(at(window, "2024-05-02T01:59:59.999Z")).toBe("open");
    expect(at(window, "2024-05-02T02:00:00Z")).toBe("2024-05-03T00:00:00.000Z 2024-05-03T02:00:00.000Z");
  });

  it("is open on the days on which it opens, by the device's calendar", () => {
    // 2024-05-03 is a Friday; in Auckland it is Saturday by then.
    const saturdays = daily("01:00", "05:00", [6]);
    expect(at(saturdays, "2024-05-03T14:00:00Z", "Pacific/Auckland")).toBe("open");
    expect(at(saturdays, "2024-05-03T14:00:00Z", "Europe/Berlin")).not.toBe("open");
  });

  it("goes on past midnight into a day on which none opens", () => {
    const window = daily("22:00", "03:00", [5]);
    expect(at(window, "2024-05-03T20:30:00Z")).toBe("open");
    expect(at(window, "2024-05-04T00:59:00Z")).toBe("open");
    expect(at(window, "2024-05-04T01:00:00Z")).toBe("2024-05-10T20:00:00.000Z 2024-05-11T01:00:00.000Z");
    expect(at(window, "2024-05-04T20:30:00Z")).not.toBe("open");
  });

  it("goes on past midnight from Sunday to Monday", () => {
    expect(at(daily("23:00", "01:00", [7]), "2024-05-05T22:30:00Z")).toBe("open");
  });

  it("that closes when it opens is open for a day, and every day is always", () => {
    expect(at(daily("06:00", "06:00", [1]), "2024-05-07T03:59:00Z")).toBe("open");
    expect(at(daily("06:00", "06:00", [1]), "2024-05-07T04:00:00Z")).not.toBe("open");
    expect(at(daily("06:00", "06:00"), "2024-05-07T04:00:00Z")).toBe("open");
  });

  it("that goes on into the next day's is one opening", () => {
    const window = daily("20:00", "20:00", [1, 2]);
    expect(at(window, "2024-05-06T12:00:00Z")).toBe("2024-05-06T18:00:00.000Z 2024-05-08T18:00:00.000Z");
  });

  describe("where the clock is put forward (Berlin, 2024-03-31, 02:00 to 03:00)", () => {
    it("opens and closes by the clock on the wall before and after", () => {
      const window = daily("01:30", "03:30");
      expect(at(window, "2024-03-31T00:29:00Z")).toBe("2024-03-31T00:30:00.000Z 2024-03-31T01:30:00.000Z");
      expect(at(window, "2024-03-31T01:29:00Z")).toBe("open");
      expect(at(window, "2024-03-31T01:30:00Z")).toBe("2024-03-31T23:30:00.000Z 2024-04-01T01:30:00.000Z");
    });

    it("opens when the clock is put forward over its opening", () => {
      expect(at(daily("02:30", "04:00"), "2024-03-31T00:00:00Z")).toBe(
        "2024-03-31T01:00:00.000Z 2024-03-31T02:00:00.000Z",
      );
    });

    it("closes when the clock is put forward over its closing", () => {
      expect(at(daily("01:00", "02:30"), "2024-03-30T23:00:00Z")).toBe(
        "2024-03-31T00:00:00.000Z 2024-03-31T01:00:00.000Z",
      );
    });

    it("within the missing hour opens the next day only", () => {
      expect(at(daily("02:15", "02:45"), "2024-03-31T00:30:00Z")).toBe(
        "2024-04-01T00:15:00.000Z 2024-04-01T00:45:00.000Z",
      );
    });
  });

  describe("where the clock is put back (Berlin, 2024-10-27, 03:00 to 02:00)", () => {
    it("over the double hour stays open for as long as the clock on the wall is within it", () => {
      const window = daily("02:00", "03:00");
      expect(at(window, "2024-10-26T23:00:00Z")).toBe("2024-10-27T00:00:00.000Z 2024-10-27T02:00:00.000Z");
      expect(at(window, "2024-10-27T01:59:00Z")).toBe("open");
    });

    it("within the double hour opens twice", () => {
      const window = daily("02:15", "02:45");
      expect(at(window, "2024-10-27T00:00:00Z")).toBe("2024-10-27T00:15:00.000Z 2024-10-27T00:45:00.000Z");
      expect(at(window, "2024-10-27T00:50:00Z")).toBe("2024-10-27T01:15:00.000Z 2024-10-27T01:45:00.000Z");
    });

    it("after it opens by the new clock", () => {
      expect(at(daily("04:00", "05:00"), "2024-10-27T00:00:00Z")).toBe(
        "2024-10-27T03:00:00.000Z 2024-10-27T04:00:00.000Z",
      );
    });
  });

  it("follows a clock that is put forward by half an hour, and one ahead of UTC by three quarters", () => {
    // Lord Howe Island, 2024-10-06: from 02:00 to 02:30.
    expect(at(daily("02:10", "04:00"), "2024-10-05T15:00:00Z", "Australia/Lord_Howe")).toBe(
      "2024-10-05T15:30:00.000Z 2024-10-05T17:00:00.000Z",
    );
    expect(at(daily("12:00", "13:00"), "2024-05-01T06:00:00Z", "Asia/Kathmandu")).toBe(
      "2024-05-01T06:15:00.000Z 2024-05-01T07:15:00.000Z",
    );
  });

  it("is by UTC in a zone that nobody knows", () => {
    expect(at(daily("12:00", "13:00"), "2024-05-01T12:30:00Z", "Mars/Olympus")).toBe("open");
  });

  it("opens at the first minute at which a clock on the wall is within it", () => {
    const zones = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Chatham"];
    let closed = 0;
    fc.assert(
      fc.property(
        fc.record({
          timeZone: fc.constantFrom(...zones),
          // Days around the changes of the clock, and any others.
          now: fc.oneof(
            fc.constantFrom("2024-03-30", "2024-10-26", "2024-03-09", "2024-11-02", "2024-04-06", "2024-10-05"),
            fc.constantFrom("2024-05-01", "2024-12-31", "2024-02-29"),
          ),
          offset: fc.nat({ max: 2 * 1440 - 1 }),
          days: fc.subarray(EVERY_DAY, { minLength: 1 }),
          fromMinute: fc.nat({ max: 1439 }),
          toMinute: fc.nat({ max: 1439 }),
        }),
        ({ timeZone, now, offset, ...window }) => {
          const start = Date.parse(`${now}T00:00:00Z`) + offset * MINUTE_MS;
          const found = windowAt(window, { now: new Date(start), timeZone });
          expect(found === "open").toBe(onTheWall(window, start, timeZone));
          if (found === "open") return;
          closed += 1;
          const end = found.opensAt.getTime();
          // A minute at a time, as far as is bearable.
          for (let minute = Math.max(start, end - 300 * MINUTE_MS); minute < end; minute += MINUTE_MS) {
            expect(onTheWall(window, minute, timeZone)).toBe(false);
          }
          expect(onTheWall(window, end, timeZone)).toBe(true);
          const close = found.closesAt?.getTime() ?? 0;
          expect(onTheWall(window, close - MINUTE_MS, timeZone)).toBe(true);
          if (close - end < 6 * 86_400_000) expect(onTheWall(window, close, timeZone)).toBe(false);
        },
      ),
      { numRuns: 120 },
    );
    expect(closed).toBeGreaterThan(20);
  });
});

/** The same by what a clock on the wall shows, minute by minute and day by day, as a person would say it. */
function onTheWall({ days, fromMinute, toMinute }: MaintenanceWindow, instant: number, timeZone: string): boolean {
  const text = new Date(instant).toLocaleString("sv-SE", { timeZone });
  const [date = "", time = ""] = text.split(" ");
  const weekday = new Date(`${date}T00:00:00Z`).getUTCDay() || 7;
  const minute = Number(time.slice(0, 2)) * 60 + Number(time.slice(3, 5));
  const opens = (day: number) => days.includes(day < 1 ? 7 : day);
  if (toMinute > fromMinute) return opens(weekday) && minute >= fromMinute && minute < toMinute;
  return (opens(weekday) && minute >= fromMinute) || (opens(weekday - 1) && minute < toMinute);
}
