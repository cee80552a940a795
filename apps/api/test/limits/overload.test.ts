import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { afterEach, describe, expect, test } from "vitest";
import type { LimitEvent } from "../../src/limits/events.ts";
import { createOverload, type Overload, type OverloadOptions } from "../../src/limits/overload.ts";

const opened: Overload[] = [];
afterEach(() => {
  for (const overload of opened.splice(0)) overload.stop();
});

function watch(options: Partial<OverloadOptions>) {
  const events: LimitEvent[] = [];
  const lines: string[] = [];
  const overload = createOverload({
    ...{ loopLimitMs: 0, databaseLimitMs: 0, database: undefined, enterMs: 200, leaveMs: 200 },
    logger: pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line).msg) }),
    observe: (event) => events.push(event),
    ...options,
  });
  opened.push(overload);
  return { overload, events, lines };
}

describe("createOverload", () => {
  test("an event loop that stays late is an overload, and its end is the end; each is a line in the log", async () => {
    const { overload, events, lines } = watch({ loopLimitMs: 50 });
    for (let i = 0; i < 20 && overload.cause === undefined; i++) {
      const untilMs = performance.now() + 250;
      while (performance.now() < untilMs);
      await sleep(1);
    }
    expect(overload.cause).toBe("event-loop");
    overload.turnedAway("event-loop");
    overload.turnedAway("event-loop");
    await expect.poll(() => overload.cause, { timeout: 20_000 }).toBeUndefined();
    expect(lines).toEqual(["overloaded: checks are turned away", "checks are answered again"]);
    expect(events.map((event) => ("active" in event ? `${event.kind} ${event.active}` : event.kind))).toEqual([
      ...["overload true", "shed", "shed", "overload false"],
    ]);
  });

  test("a database that is late is an overload until a probe was answered in time", async () => {
    let delayMs: number | undefined = 500;
    let probes = 0;
    const database = {
      takeDelayMs: () => delayMs,
      async probe(): Promise<void> {
        probes += 1;
      },
    };
    const { overload } = watch({ databaseLimitMs: 100, database });
    await expect.poll(() => overload.cause, { timeout: 20_000 }).toBe("database");
    // Nothing reaches the database any more: that alone says nothing.
    delayMs = undefined;
    await expect.poll(() => probes, { timeout: 20_000 }).toBeGreaterThan(2);
    expect(overload.cause).toBe("database");
    delayMs = 10;
    await expect.poll(() => overload.cause, { timeout: 20_000 }).toBeUndefined();
  });

  test("limits of 0 are none", async () => {
    const { overload } = watch({ database: { takeDelayMs: () => 1e9, probe: async () => {} } });
    await sleep(500);
    expect(overload.cause).toBeUndefined();
  });
});
