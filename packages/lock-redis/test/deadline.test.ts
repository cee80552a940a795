import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { NoAnswerInTime, withDeadline } from "../src/deadline.ts";
import { pause } from "./support.ts";

const fixture = fileURLToPath(new URL("fixtures/wait-for-deadlines.ts", import.meta.url));
const never = new Promise<never>(() => {});

describe("deadlines", () => {
  it("pass in their order, those of what was answered not at all, and never before their time", async () => {
    const timeoutMs = 50;
    const passed: number[] = [];
    const startedAt = performance.now();
    const all = Array.from({ length: 9 }, async (_, index) => {
      await pause(index * 10);
      const from = performance.now();
      const answer = index % 3 === 0 ? Promise.resolve("answered") : never;
      try {
        return await withDeadline(answer, { timeoutMs });
      } catch (error) {
        expect(error).toBeInstanceOf(NoAnswerInTime);
        expect(performance.now() - from).toBeGreaterThanOrEqual(timeoutMs);
        passed.push(index);
        return "passed";
      }
    });
    const nth = ["answered", "passed", "passed"];
    expect(await Promise.all(all)).toEqual([...nth, ...nth, ...nth]);
    expect(passed).toEqual([1, 2, 4, 5, 7, 8]);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });

  it("keep a process alive while something is waited for, and not a moment longer", async () => {
    const options = { timeout: 30_000 };
    const { stdout } = await promisify(execFile)(process.execPath, ["--conditions=@ota/source", fixture], options);
    expect(stdout).toBe(
      "with a new timer: no answer within 200 ms\nwith a timer that was idle: no answer within 200 ms\n",
    );
  }, 40_000);
});
