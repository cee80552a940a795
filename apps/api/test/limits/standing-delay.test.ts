import { describe, expect, test } from "vitest";
import { StandingDelay } from "../../src/limits/standing-delay.ts";

/** Feeds samples that are 100 ms apart, and tells after each whether the delay stands. */
function play(samples: readonly (number | undefined)[]): boolean[] {
  const delay = new StandingDelay({ limitMs: 1000, enterMs: 300, leaveMs: 300 });
  return samples.map((sample, index) => {
    delay.sample(sample, index * 100);
    return delay.stands;
  });
}

const times = <T>(count: number, value: T): T[] => Array<T>(count).fill(value);

describe("StandingDelay", () => {
  test("stands once it has been too long for long enough, at the limit too", () => {
    expect(play(times(4, 1000))).toEqual([false, false, false, true]);
  });

  test("one short delay in between, or one that nobody knows, makes it a burst", () => {
    expect(play([2000, 2000, 2000, 10, 2000, 2000, 2000])).not.toContain(true);
    expect(play([2000, 2000, 2000, undefined, 2000, 2000, 2000])).not.toContain(true);
  });

  test("ends when it has been below half the limit for long enough", () => {
    const entered = times(4, 2000);
    expect(play([...entered, ...times(4, 499)]).slice(4)).toEqual([true, true, true, false]);
  });

  test("goes on between half the limit and the limit, so that it does not come and go", () => {
    const alternating = times(10, [600, 100]).flat();
    expect(play([...times(4, 2000), ...alternating]).slice(3)).not.toContain(false);
  });

  test("does not end on silence", () => {
    expect(play([...times(4, 2000), ...times(20, undefined)]).at(-1)).toBe(true);
    expect(play([...times(4, 2000), 10, ...times(20, undefined)]).at(-1)).toBe(true);
  });
});
