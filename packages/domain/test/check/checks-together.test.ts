import { createGatewayToken, hashToken, rotateDeviceToken } from "@ota/domain";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFleet, startChecks } from "../support/fleet.ts";
import { openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";

const READS_DEVICES = /with ordinality given\(hash, place\)/;

describe.skipIf(!hasPostgres)("checks that come together", () => {
  let database: PostgresTestDatabase;
  beforeAll(async () => {
    database = await openPostgresClient();
  });
  afterAll(() => database.close());

  /** Checks, and how many statements have read the state of devices so far. */
  function countedChecks() {
    let reads = 0;
    const before = async (text: string) => {
      if (READS_DEVICES.test(text)) reads += 1;
    };
    return { checks: startChecks(database.hooked({ before })), reads: () => reads };
  }

  it("read the states of all their devices by one statement, and each is answered its own", async () => {
    const fleet = await createFleet(database.db);
    await fleet.release("2.0.0");
    const devices = await Promise.all(Array.from({ length: 30 }, () => fleet.device()));
    const { checks, reads } = countedChecks();
    const check = () =>
      Promise.all(
        devices.map(({ tokenHash }, i) =>
          checks.checkForUpdate({ tokenHash, reported: { version: i % 3 === 0 ? "2.0.0" : "1.0.0" } }),
        ),
      );
    const first = await check();
    expect(reads()).toBe(1);
    expect(await check()).toMatchObject(first.map(({ device, decision }) => ({ device, decision })));
    expect(reads()).toBe(2);
    expect(first.map(({ device }) => device.id)).toEqual(devices.map(({ id }) => id));
    expect(first.map(({ decision }) => decision)).toEqual(devices.map((_, i) => (i % 3 === 0 ? "none" : "update")));
  });

  it("do not share what is wrong with one of them", async () => {
    const fleet = await createFleet(database.db);
    const one = await fleet.device();
    const rotated = await fleet.device();
    await rotateDeviceToken(database.db, { actor: { kind: "system" }, deviceId: rotated.id });
    const gateway = await createGatewayToken(database.db, {
      ...{ actor: { kind: "system" }, product: fleet.product, name: "gateway" },
    });
    const { checks } = countedChecks();
    const gatewayHash = hashToken(gateway.token);
    const answers = await Promise.allSettled([
      checks.checkForUpdate({ tokenHash: hashToken("nobody's") }),
      checks.checkForUpdate({ tokenHash: one.tokenHash }),
      checks.checkForUpdate({ tokenHash: rotated.tokenHash }),
      checks.checkForUpdate({ tokenHash: one.tokenHash, ownSerial: "another" }),
      checks.checkForUpdate({ tokenHash: one.tokenHash, ownSerial: one.serial }),
      checks.checkForUpdate({ tokenHash: gatewayHash, serial: "behind-1" }),
      checks.checkForUpdate({ tokenHash: gatewayHash, serial: 'no "serial"' }),
      checks.checkForUpdate({ tokenHash: gatewayHash, serial: "behind-2" }),
      checks.checkForUpdate({ tokenHash: gatewayHash, serial: one.serial }),
    ]);
    expect(answers.map((one) => (one.status === "fulfilled" ? one.value.device.serial : one.reason.code))).toEqual([
      ...["DEVICE_TOKEN_INVALID", one.serial, rotated.serial, "DEVICE_TOKEN_INVALID", one.serial, "behind-1"],
      ...["INVALID_FIELD", "behind-2", "GATEWAY_TOKEN_REFUSED"],
    ]);
  });

  it("need no plan of their own for each number of them", async () => {
    await database.query("create extension pg_stat_statements");
    await database.query(
      `do $$ begin execute format('alter database %I set pg_stat_statements.track_planning = on', current_database()); end $$`,
    );
    const fleet = await createFleet(database.db);
    const devices = await Promise.all(Array.from({ length: 20 }, () => fleet.device()));
    const checks = startChecks(database.hooked({ prepared: true }));
    const rounds = 200;
    for (let round = 0; round < rounds; round += 1) {
      // Mostly one alone, for which a plan of its own would look cheaper than one for any number.
      const some = devices.slice(0, round % 20 === 0 ? devices.length : 1);
      await Promise.all(some.map(({ tokenHash }) => checks.checkForUpdate({ tokenHash })));
    }
    const [row] = await database.query(`
      select calls::int, plans::int from pg_stat_statements
      where dbid = (select oid from pg_database where datname = current_database())
        and query like '%unnest(%token_hash%' and query not like '%serial, place)%'
      order by plans desc limit 1
    `);
    expect(row?.["calls"]).toBeGreaterThanOrEqual(rounds);
    // Five of its own and one for all, on each of the ten connections, as PostgreSQL does with every statement.
    expect(row?.["plans"]).toBeGreaterThan(0);
    expect(row?.["plans"]).toBeLessThanOrEqual(60);
  });
});
