import { createGatewayToken, type DeviceAttributes, hashToken, rotateDeviceToken, withdrawFirmware } from "@ota/domain";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFleet, startChecks } from "../support/fleet.ts";
import { decidedAgain, openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";

/** On another day of the week than this one, by UTC. */
const CLOSED = { days: [((new Date().getUTCDay() + 2) % 7) + 1], fromMinute: 0, toMinute: 1 };

describe.skipIf(!hasPostgres)("the statements of one check, BEGIN and COMMIT counted", () => {
  let database: PostgresTestDatabase;
  beforeAll(async () => {
    database = await openPostgresClient();
    await database.query("create extension pg_stat_statements");
  });
  afterAll(() => database.close());

  /** How many statements the server has executed in this database meanwhile. */
  async function statementsOf(work: () => Promise<unknown>): Promise<number> {
    await database.query(
      "select pg_stat_statements_reset(0, (select oid from pg_database where datname = current_database()), 0)",
    );
    await work();
    const [row] = await database.query(`
      select coalesce(sum(calls), 0)::int as calls from pg_stat_statements
      where dbid = (select oid from pg_database where datname = current_database())
        and query not like '%pg_stat_statements%'
    `);
    return row?.["calls"] as number;
  }

  async function setUp(options: { readonly startRollout?: boolean } = {}) {
    const fleet = await createFleet(database.db);
    const firmware = await fleet.release("2.0.0", options);
    const { tokenHash } = await fleet.device();
    const checks = startChecks(database.db);
    const check = (version?: string) => () =>
      checks.checkForUpdate({ tokenHash, reported: version === undefined ? {} : { version } });
    return { checks, check, fleet, firmware, tokenHash };
  }

  it("is one when its open attempt is found", async () => {
    const { check } = await setUp();
    await check("1.0.0")();
    expect(await statementsOf(check("1.0.0"))).toBe(1);
  });

  it("is one when there is nothing to offer", async () => {
    const { check } = await setUp();
    await check("2.0.0")();
    expect(await statementsOf(check("2.0.0"))).toBe(1);
  });

  it("is one through a gateway, once that has registered the device", async () => {
    const { checks, fleet } = await setUp();
    const { product } = fleet;
    const { token } = await createGatewayToken(database.db, { actor: { kind: "system" }, product, name: "gateway" });
    const check = () =>
      checks.checkForUpdate({ tokenHash: hashToken(token), serial: "new", reported: { version: "2.0.0" } });
    // Look, register, look again, read the catalog, write the version.
    expect(await statementsOf(check)).toBe(5);
    expect(await statementsOf(check)).toBe(1);
  });

  it("is one with attributes that are known, and two with one that is news", async () => {
    const { checks, tokenHash } = await setUp();
    const check = (attributes: DeviceAttributes) => () =>
      checks.checkForUpdate({ tokenHash, reported: { version: "2.0.0", attributes } });
    await check({ modem: "1", ram: 512 })();
    expect(await statementsOf(check({ ram: 512, modem: "1" }))).toBe(1);
    expect(await statementsOf(check({ modem: "2" }))).toBe(2);
  });

  it("is one by the token before the newest rotation", async () => {
    const { checks, check, fleet } = await setUp();
    await check("2.0.0")();
    const { id, tokenHash } = await fleet.device();
    await rotateDeviceToken(database.db, { actor: { kind: "system" }, deviceId: id });
    const old = () => checks.checkForUpdate({ tokenHash, reported: { version: "2.0.0" } });
    await old();
    expect(await statementsOf(old)).toBe(1);
  });

  it.each([
    [
      "groups, a filter and an allow-list",
      { groups: ["lab"], attributeFilter: { attribute: "a", exists: true } },
      "NOT_IN_ROLLOUT",
    ],
    ["a cap that is reached", { maxTotal: 1 }, "CAP_REACHED"],
    ["a window that is closed", { window: CLOSED }, "WINDOW_CLOSED"],
  ])("is one where the rollout has %s", async (_words, terms, reason) => {
    const { check, fleet, checks, tokenHash } = await setUp({ startRollout: false });
    await fleet.rollout("2.0.0", terms);
    const other = await fleet.device();
    await checks.checkForUpdate({ tokenHash: other.tokenHash });
    await check("1.0.0")();
    expect(await statementsOf(check("1.0.0"))).toBe(1);
    expect(await checks.checkForUpdate({ tokenHash })).toMatchObject({ reason });
  });

  it("is two as well when it creates in a rollout that counts its places", async () => {
    const { checks, fleet } = await setUp({ startRollout: false });
    await fleet.rollout("2.0.0", { maxTotal: 100 });
    const [one, two] = [await fleet.device(), await fleet.device()];
    await checks.checkForUpdate({ tokenHash: one.tokenHash });
    expect(await statementsOf(() => checks.checkForUpdate({ tokenHash: two.tokenHash }))).toBe(2);
  });

  it.each([
    // Look, read the catalog, open in vain; lock the row, look again.
    ["before it opens at once", { rewrite: (text: string) => text, at: / skip locked/, sent: 5 }],
    // The same; take a place in vain; look once more.
    ["before it takes its place", { rewrite: decidedAgain, at: /^update "rollout_counters"/, sent: 7 }],
  ])(
    "is one transaction at the most when somebody else takes the last place %s",
    async (_words, { rewrite, at, sent }) => {
      const { checks, fleet } = await setUp({ startRollout: false });
      await fleet.rollout("2.0.0", { maxTotal: 1 });
      const [slow, fast] = [await fleet.device(), await fleet.device()];
      const statements: string[] = [];
      let taken = false;
      const before = async (text: string) => {
        statements.push(text.trim());
        if (taken || !at.test(text)) return;
        taken = true;
        await checks.checkForUpdate({ tokenHash: fast.tokenHash });
      };
      const answer = await startChecks(database.hooked({ before, rewrite })).checkForUpdate({
        tokenHash: slow.tokenHash,
      });
      expect(answer).toMatchObject({ decision: "none", reason: "CAP_REACHED" });
      expect(taken).toBe(true);
      expect(statements.filter((text) => text.endsWith("for update"))).toHaveLength(1);
      expect(statements).toHaveLength(sent);
    },
  );

  it("is two when the device reports another version", async () => {
    const { check } = await setUp();
    await check("2.0.0")();
    expect(await statementsOf(check("2.0.1"))).toBe(2);
  });

  it("is two when the version that it reports ends its attempt", async () => {
    const { check, tokenHash, checks } = await setUp();
    await check("1.0.0")();
    expect(await statementsOf(check("2.0.0"))).toBe(2);
    expect(await checks.checkForUpdate({ tokenHash })).toMatchObject({ decision: "none", reason: "UP_TO_DATE" });
  });

  it("is one more when the catalog has changed, once per process", async () => {
    const { check, fleet } = await setUp();
    await check("3.0.0")();
    await fleet.release("2.5.0");
    expect(await statementsOf(check("3.0.0"))).toBe(2);
    expect(await statementsOf(check("3.0.0"))).toBe(1);
  });

  it("is two when it creates: look, open", async () => {
    const { check, checks, fleet } = await setUp();
    await check()();
    const { tokenHash } = await fleet.device();
    expect(await statementsOf(() => checks.checkForUpdate({ tokenHash }))).toBe(2);
  });

  it("is two for a crowd that creates", async () => {
    const { check, checks, fleet } = await setUp();
    await check()();
    const devices = await Promise.all(Array.from({ length: 20 }, () => fleet.device()));
    const crowd = () => Promise.all(devices.map(({ tokenHash }) => checks.checkForUpdate({ tokenHash })));
    expect(await statementsOf(crowd)).toBe(2);
  });

  it("is seven when it creates after a change: look, in vain, begin, lock the row, look again, insert, commit", async () => {
    const { fleet } = await setUp();
    const sent: string[] = [];
    const before = async (text: string) => void sent.push(text);
    const checks = startChecks(database.hooked({ rewrite: decidedAgain, before }));
    await checks.checkForUpdate({ tokenHash: (await fleet.device()).tokenHash });
    const { tokenHash } = await fleet.device();
    sent.length = 0;
    await checks.checkForUpdate({ tokenHash });
    // The driver sends the first and the last one of a transaction by itself.
    expect(sent).toHaveLength(5);
  });

  it("is seven when it creates for a device that tells news: look, write, begin, lock the row, look again, insert, commit", async () => {
    const { fleet } = await setUp();
    const sent: string[] = [];
    const checks = startChecks(database.hooked({ before: async (text) => void sent.push(text) }));
    await checks.checkForUpdate({ tokenHash: (await fleet.device()).tokenHash });
    const { tokenHash } = await fleet.device();
    sent.length = 0;
    expect(await checks.checkForUpdate({ tokenHash, reported: { version: "1.0.0" } })).toMatchObject({
      how: "created",
    });
    // The driver sends the first and the last one of a transaction by itself.
    expect(sent).toHaveLength(5);
  });

  it("last seen is written apart, as one statement for many devices", async () => {
    const { checks, fleet, firmware } = await setUp();
    await withdrawFirmware(database.db, { actor: { kind: "system" }, firmwareId: firmware.id });
    const devices = await Promise.all(Array.from({ length: 10 }, () => fleet.device()));
    await Promise.all(devices.map(({ tokenHash }) => checks.checkForUpdate({ tokenHash })));
    expect(await statementsOf(() => checks.close())).toBe(1);
  });
});
