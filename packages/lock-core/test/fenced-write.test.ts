import { fencedWrite } from "@ota/lock-core";
import { describe, expect, test } from "vitest";
import { setUpFull } from "./support.ts";

async function setUpFenced() {
  const world = setUpFull({ fencing: true });
  const lease = await world.locks.createLock("k").acquire();
  return { ...world, lease };
}

describe("fencedWrite", () => {
  test("gives the write the lease's token, and gives back how many rows it changed", async () => {
    const { lease } = await setUpFenced();
    const tokens: bigint[] = [];
    const changed = await fencedWrite(lease, async (fencingToken) => tokens.push(fencingToken));
    expect([changed, tokens]).toEqual([1, [lease.fencingToken]]);
  });

  test("throws a LockLostError when no row was changed", async () => {
    const { lease } = await setUpFenced();
    await expect(fencedWrite(lease, () => 0)).rejects.toMatchObject({ code: "LOCK_LOST", key: "k" });
  });

  test("writes nothing once the lease has ended", async () => {
    const { lease, clock } = await setUpFenced();
    await clock.advance(1_000);
    const write = () => expect.unreachable("it wrote");
    await expect(fencedWrite(lease, write)).rejects.toMatchObject({ code: "LOCK_LOST" });
  });

  test("writes nothing on a lock that was made without fencing", async () => {
    const lease = await setUpFull().locks.createLock("k").acquire();
    const write = () => expect.unreachable("it wrote");
    await expect(fencedWrite(lease, write)).rejects.toMatchObject({ code: "LOCK_INVALID_OPTION", option: "fencing" });
  });

  test("lets an error of the write through", async () => {
    const { lease } = await setUpFenced();
    const error = new Error("no connection");
    await expect(fencedWrite(lease, () => Promise.reject(error))).rejects.toBe(error);
  });
});
