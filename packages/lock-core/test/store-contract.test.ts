import { MemoryState, MemoryStore } from "@ota/lock-core";
import { ManualClock, type StoreCapability, storeContract } from "@ota/lock-core/testing";
import { describe, test } from "vitest";

const claims: readonly StoreCapability[] = ["shared", "fencing", "inspection", "waiting"];

describe("MemoryStore on Node's clock", () => {
  const state = new MemoryState();
  const stores = [new MemoryStore({ state }), new MemoryStore({ state })] as const;
  for (const { rule, title, run } of storeContract({ stores: () => stores, claims, shortTtlMs: 60 })) {
    test(`rule ${rule}: ${title}`, run);
  }
});

describe("MemoryStore on a clock of the test's own", () => {
  const clock = new ManualClock();
  const state = new MemoryState({ clock });
  const stores = [new MemoryStore({ state }), new MemoryStore({ state })] as const;
  for (const { rule, title, run } of storeContract({
    stores: () => stores,
    claims,
    clock,
    elapse: (ms) => clock.advance(ms),
  })) {
    test(`rule ${rule}: ${title}`, run);
  }
});
