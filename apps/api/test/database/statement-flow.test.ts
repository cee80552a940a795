import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { StatementFlow } from "../../src/statement-flow.ts";

/** As the driver marks a statement that waits, and one that was sent. */
const waiting = () => ({ state: null });
const sentOn = (connection: object) => ({ state: connection });

describe("StatementFlow", () => {
  test("tells connections in use, statements sent and waiting, and the oldest", async () => {
    const flow = new StatementFlow();
    expect(flow.load()).toEqual({ inUse: 0, sent: 0, waiting: 0, oldestMs: 0 });
    const [one, other] = [{}, {}];
    const flights = [sentOn(one), sentOn(one), sentOn(other), waiting()].map((query) => flow.begin(query));
    await sleep(20);
    const load = flow.load();
    expect(load).toMatchObject({ inUse: 2, sent: 3, waiting: 1 });
    expect(load.oldestMs).toBeGreaterThan(10);
    for (const flight of flights) flow.end(flight, "answered");
    expect(flow.load()).toEqual({ inUse: 0, sent: 0, waiting: 0, oldestMs: 0 });
  });

  test("the delay is that of the fastest statement, so that one slow query is no delay", async () => {
    const flow = new StatementFlow();
    const slow = flow.begin(sentOn({}));
    await sleep(50);
    const quick = flow.begin(sentOn({}));
    flow.end(slow, "answered");
    flow.end(quick, "answered");
    expect(flow.takeDelayMs(1)).toBeLessThan(40);
    expect(flow.takeDelayMs(1)).toBeUndefined();
  });

  test("without any answer the oldest statement tells, once more are on their way than there are connections", async () => {
    const flow = new StatementFlow();
    flow.begin(sentOn({}));
    await sleep(20);
    expect(flow.takeDelayMs(1)).toBeUndefined();
    flow.begin(waiting());
    expect(flow.takeDelayMs(1)).toBeGreaterThan(10);
  });

  test("a statement that failed at once says nothing good about the database", () => {
    const flow = new StatementFlow();
    flow.end(flow.begin(waiting()), "failed");
    expect(flow.takeDelayMs(4)).toBeUndefined();
  });
});
