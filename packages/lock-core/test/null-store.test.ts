import { LockFactory, LockOptionsError, NullStore } from "@ota/lock-core";
import { describe, expect, test } from "vitest";

function setUp() {
  const said: string[] = [];
  const logger = {
    debug() {},
    info() {},
    warn: (_fields: unknown, message: string) => void said.push(message),
    error() {},
  };
  const store = new NullStore({ logger });
  return { said, store, locks: new LockFactory(store, { logger }) };
}

describe("NullStore", () => {
  test("grants every lock to everybody, and says once that it does", async () => {
    const { locks, said } = setUp();
    const lock = locks.createLock("k");
    const leases = await Promise.all([lock.tryAcquire(), lock.acquire(), lock.tryAcquire({ mode: "shared" })]);
    expect(leases.map((lease) => [lease?.status, lease?.mode])).toEqual([
      ["held", "exclusive"],
      ["held", "exclusive"],
      ["held", "shared"],
    ]);
    expect(said).toEqual([expect.stringMatching(/switched off/)]);
    expect(new NullStore().name).toMatch(/no locking/);
  });

  test("lets a lease do all that a lease does", async () => {
    const { locks } = setUp();
    const lease = await locks.createLock("k").acquire({ mode: "shared" });
    expect(await lease.promote()).toBe("promoted");
    expect(await lease.demote()).toBe("demoted");
    expect(await lease.extend()).toBe("extended");
    expect(await lease.isHeld()).toBe(true);
    const restored = await locks.restore(JSON.stringify(lease));
    expect(restored?.status).toBe("held");
    expect(await lease.release()).toBe("released");
  });

  test("has no fencing tokens, and refuses a lock that asks for them", () => {
    expect(() => setUp().locks.createLock("k", { fencing: true })).toThrow(LockOptionsError);
  });

  test("warns the process when it has no logger", async () => {
    const warned = new Promise<Error>((resolve) => process.once("warning", resolve));
    await new NullStore().acquire({ key: "k", owner: "o" });
    expect((await warned).message).toMatch(/switched off/);
  });
});
