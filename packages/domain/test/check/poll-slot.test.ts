import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { secondsToOpening, secondsToSlot } from "../../src/check/poll-slot.ts";

const interval = fc.integer({ min: 30, max: 86_399 });
const time = fc.date({ min: new Date("2024-01-01"), max: new Date("2030-01-01"), noInvalidDate: true });

describe("secondsToSlot", () => {
  it("is always a whole number from 30 seconds to 23:59:59", () => {
    fc.assert(
      fc.property(fc.uuid(), interval, time, (deviceId, intervalSeconds, now) => {
        const seconds = secondsToSlot({ deviceId, intervalSeconds, now });
        expect(Number.isInteger(seconds)).toBe(true);
        expect(seconds).toBeGreaterThanOrEqual(30);
        expect(seconds).toBeLessThanOrEqual(86_399);
      }),
    );
  });

  it("names the same moment of the interval whenever the device asks", () => {
    fc.assert(
      fc.property(
        fc.uuid(),
        fc.integer({ min: 30, max: 40_000 }),
        time,
        time,
        (deviceId, intervalSeconds, one, other) => {
          const slotOf = (now: Date) =>
            Math.floor(now.getTime() / 1000 + secondsToSlot({ deviceId, intervalSeconds, now }));
          const apart = (slotOf(one) - slotOf(other)) % intervalSeconds;
          // The answer is in whole seconds, the question comes at any millisecond.
          expect([0, 1, -1, intervalSeconds - 1, 1 - intervalSeconds]).toContain(apart + 0);
        },
      ),
    );
  });

  it("a device that comes a little early is not told to come again at once", () => {
    const deviceId = randomUUID();
    const first = secondsToSlot({ deviceId, intervalSeconds: 300, now: new Date(0) });
    const early = new Date((first - 2) * 1000);
    expect(secondsToSlot({ deviceId, intervalSeconds: 300, now: early })).toBeGreaterThanOrEqual(300);
  });

  it("spreads devices that ask at the same moment evenly over one interval", () => {
    const now = new Date("2024-05-01T00:00:00Z");
    const bins = new Array<number>(30).fill(0);
    const devices = 30_000;
    for (let device = 0; device < devices; device += 1) {
      const seconds = secondsToSlot({ deviceId: randomUUID(), intervalSeconds: 300, now });
      const bin = Math.floor((seconds % 300) / 10);
      bins[bin] = (bins[bin] as number) + 1;
    }
    expect(Math.max(...bins)).toBeLessThan((devices / 30) * 1.2);
    expect(Math.min(...bins)).toBeGreaterThan((devices / 30) * 0.8);
  });
});

describe("secondsToOpening", () => {
  const minutes = (count: number) => count * 60_000;

  it("leads every device into the opening, and never lets it come later than its slot before that", () => {
    let led = 0;
    fc.assert(
      fc.property(
        fc.uuid(),
        fc.integer({ min: 30, max: 86_399 }),
        fc.integer({ min: 1, max: minutes(3 * 1440) }),
        fc.integer({ min: 2, max: 600 }),
        (deviceId, intervalSeconds, untilMs, openMinutes) => {
          let now = new Date("2024-05-01T00:00:00Z");
          const opensAt = new Date(now.getTime() + untilMs);
          const closesAt = new Date(opensAt.getTime() + minutes(openMinutes));
          while (now < opensAt) {
            const slot = { deviceId, intervalSeconds, now };
            const seconds = secondsToOpening(slot, { opensAt, closesAt });
            expect(Number.isInteger(seconds)).toBe(true);
            expect(seconds).toBeGreaterThanOrEqual(30);
            expect(seconds).toBeLessThanOrEqual(secondsToSlot(slot));
            if (seconds < secondsToSlot(slot)) led += 1;
            now = new Date(now.getTime() + seconds * 1000);
          }
          expect(now.getTime()).toBeLessThan(closesAt.getTime());
        },
      ),
      { numRuns: 300 },
    );
    expect(led).toBeGreaterThan(30);
  });

  it("spreads the devices that it leads there over the first half of the opening", () => {
    const now = new Date("2024-05-01T00:00:00Z");
    const opensAt = new Date(now.getTime() + minutes(60));
    const closesAt = new Date(opensAt.getTime() + minutes(20));
    const bins = new Array<number>(10).fill(0);
    for (let device = 0; device < 20_000; device += 1) {
      const slot = { deviceId: randomUUID(), intervalSeconds: 86_399, now };
      const seconds = secondsToOpening(slot, { opensAt, closesAt });
      const bin = Math.floor((seconds - 3_601) / 60);
      // Those whose slot is before the closing anyway keep it.
      if (seconds < secondsToSlot(slot)) bins[bin] = (bins[bin] ?? 0) + 1;
    }
    expect(bins).toHaveLength(10);
    expect(Math.max(...bins)).toBeLessThan(Math.min(...bins) * 1.3);
  });

  it("leads to the end of a pause between attempts", () => {
    const now = new Date("2024-05-01T00:00:00Z");
    const opensAt = new Date(now.getTime() + minutes(10));
    const slot = { deviceId: "a", intervalSeconds: 86_399, now };
    expect(secondsToOpening(slot, { opensAt, closesAt: undefined })).toBe(600);
  });
});
