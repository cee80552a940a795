import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { deleteDevice, registerDevices } from "../../src/index.ts";
import { createFleet } from "../support/fleet.ts";
import { openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";

const actor = { kind: "system" } as const;

describe.skipIf(!hasPostgres)("a list of devices of which one is deleted meanwhile", () => {
  let database: PostgresTestDatabase;
  beforeAll(async () => {
    database = await openPostgresClient();
  });
  afterAll(() => database.close());

  it.each(["update", "skip"] as const)("is refused as a whole, to be sent again (%s)", async (existing) => {
    const { product, device } = await createFleet(database.db);
    const { id: deviceId, serial } = await device();
    let deleted = false;
    // It was in the way of the insert, and is gone when it is looked for.
    const before = async (text: string) => {
      if (deleted || !/^\s*select .* from "devices"/.test(text)) return;
      deleted = true;
      await deleteDevice(database.db, { actor, deviceId });
    };
    const lines = [{ line: 1, device: { serial } }];
    const register = () => registerDevices(database.hooked({ before }), { actor, product, lines, existing });
    await expect(register()).rejects.toMatchObject({ code: "SERVICE_BUSY" });
    expect(deleted).toBe(true);
    expect(await register()).toMatchObject([{ serial, outcome: "registered" }]);
  });
});
