import { systemClock } from "@ota/lock-core";
import { ManualClock } from "@ota/lock-core/testing";
import { describe, expect, test } from "vitest";

describe("systemClock", () => {
  test("does not follow the wall clock", () => {
    const RealDate = globalThis.Date;
    const before = systemClock.now();
    globalThis.Date = class extends RealDate {
      static override now = () => 0;
    } as DateConstructor;
    try {
      expect(systemClock.now()).toBeGreaterThanOrEqual(before);
      expect(systemClock.now()).toBeLessThan(before + 60_000);
    } finally {
      globalThis.Date = RealDate;
    }
  });

  test("fires a timer once, and not when it was cancelled", async () => {
    const fired: string[] = [];
    const cancel = systemClock.setTimer(1, () => fired.push("cancelled"));
    cancel();
    cancel();
    await new Promise<void>((resolve) => {
      systemClock.setTimer(5, () => {
        fired.push("kept");
        resolve();
      });
    });
    expect(fired).toEqual(["kept"]);
  });

  test("keeps a delay that is too long for Node's timers from firing at once", async () => {
    let fired = false;
    const cancel = systemClock.setTimer(2 ** 40, () => {
      fired = true;
    });
    await new Promise<void>((resolve) => void systemClock.setTimer(10, resolve));
    cancel();
    expect(fired).toBe(false);
  });
});

describe("ManualClock", () => {
  test("stands still, and fires in order of time what falls due when it is moved", async () => {
    const clock = new ManualClock();
    const fired: string[] = [];
    const note = (what: string) => () => fired.push(`${what}@${clock.now()}`);
    clock.setTimer(30, note("late"));
    clock.setTimer(10, note("early"));
    const cancel = clock.setTimer(20, note("cancelled"));
    clock.setTimer(10, () => void clock.setTimer(5, note("nested")));
    cancel();
    expect(clock.now()).toBe(0);
    await clock.advance(29);
    expect([fired, clock.now(), clock.pendingTimers]).toEqual([["early@10", "nested@15"], 29, 1]);
    await clock.advance(1);
    expect(fired).toEqual(["early@10", "nested@15", "late@30"]);
  });

  test("lets promises go on between one timer and the next", async () => {
    const clock = new ManualClock();
    const seen: number[] = [];
    const pause = (ms: number) => new Promise<void>((resolve) => void clock.setTimer(ms, resolve));
    const loop = (async () => {
      for (let round = 0; round < 5; round++) {
        await pause(10);
        seen.push(clock.now());
      }
    })();
    await clock.advance(50);
    await loop;
    expect(seen).toEqual([10, 20, 30, 40, 50]);
  });
});
