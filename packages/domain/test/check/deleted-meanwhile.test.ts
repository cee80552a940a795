import { createGatewayToken, type DeviceCredentials, deleteDevice, hashToken } from "@ota/domain";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFleet, startChecks } from "../support/fleet.ts";
import { decidedAgain, openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";

const actor = { kind: "system" } as const;

describe.skipIf(!hasPostgres)("a check whose device is deleted before it is locked", () => {
  let database: PostgresTestDatabase;
  beforeAll(async () => {
    database = await openPostgresClient();
  });
  afterAll(() => database.close());

  /** A check by these credentials, during which the device is deleted. */
  async function checkAndDelete(credentials: DeviceCredentials, deviceId: string) {
    let deleted = false;
    const before = async (text: string) => {
      if (deleted || !/^\s*select id from devices .* for update$/.test(text.trim())) return;
      deleted = true;
      await deleteDevice(database.db, { actor, deviceId });
    };
    await expect(
      startChecks(database.hooked({ before, rewrite: decidedAgain })).checkForUpdate(credentials),
    ).rejects.toMatchObject({
      code: "SERVICE_BUSY",
    });
    expect(deleted).toBe(true);
  }

  it("is to be made again: through a gateway it then registers the device anew", async () => {
    const { db } = database;
    const { product, release } = await createFleet(db);
    const { token } = await createGatewayToken(db, { actor, product, name: "gateway" });
    const credentials = { tokenHash: hashToken(token), serial: "behind" };
    const { device } = await startChecks(db).checkForUpdate(credentials);
    await release("2.0.0");
    await checkAndDelete(credentials, device.id);
    const again = await startChecks(db).checkForUpdate(credentials);
    expect(again).toMatchObject({ decision: "update", device: { serial: "behind" } });
    expect(again.device.id).not.toBe(device.id);
  });

  it("by a token of its own it is refused then", async () => {
    const fleet = await createFleet(database.db);
    await fleet.release("2.0.0");
    const { id, tokenHash } = await fleet.device();
    await checkAndDelete({ tokenHash }, id);
    await expect(startChecks(database.db).checkForUpdate({ tokenHash })).rejects.toMatchObject({
      code: "DEVICE_TOKEN_INVALID",
    });
  });
});
