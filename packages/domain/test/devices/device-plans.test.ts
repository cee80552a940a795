import {
  createGatewayToken,
  type DeviceFilter,
  deleteDevice,
  findArtifactForDevice,
  hashToken,
  listDevices,
  recordAttributes,
  registerDevices,
} from "@ota/domain";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFleet, startChecks } from "../support/fleet.ts";
import { planOf } from "../support/plan-of.ts";
import { openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";

const DEVICES = 50_000;
const GROWING = /Seq Scan on (devices|upgrades|upgrade_attempts|attempt_events|rollout_devices)\b/;

describe.skipIf(!hasPostgres)("the statements about devices, among many of them", () => {
  let database: PostgresTestDatabase;
  let fleet: Awaited<ReturnType<typeof createFleet>>;

  beforeAll(async () => {
    database = await openPostgresClient();
    fleet = await createFleet(database.db);
    await fleet.release("1.0.0", { startRollout: true });
    await database.query(`
      insert into devices
        (public_id, product_id, serial, token_hash, channel, groups, attributes, reported_version, blocked)
        select
          gen_random_uuid(), p.id, 'filler-' || n, sha256(('filler-' || n)::bytea),
          case when n % 100 = 0 then 'beta' else 'stable' end, array[case when n <= 50 then 'rare' else 'g' || n % 500 end],
          jsonb_build_object('modem', (n % 300)::text, 'old', case when n <= 50 then 'yes' else 'no' end), '1.' || n % 50, n % 1000 = 0
        from products p, generate_series(1, ${DEVICES}) n;
      insert into upgrades (public_id, device_id, firmware_id, rollout_id)
        select gen_random_uuid(), d.id, f.id, r.id from devices d, firmware f join rollouts r on r.firmware_id = f.id;
      insert into upgrade_attempts (upgrade_id, device_id, firmware_id, rollout_id, n, state, last_seq)
        select id, device_id, firmware_id, rollout_id, 1, 'offered', 1 from upgrades;
      insert into attempt_events (attempt_id, seq, to_state) select id, 1, 'offered' from upgrade_attempts;
      insert into rollout_devices (rollout_id, device_id) select rollout_id, device_id from upgrades;
      analyze;
    `);
  });
  afterAll(() => database.close());

  /** The plans, for any parameters, of the statements that the work sends. */
  async function plansOf(work: (db: PostgresTestDatabase["db"]) => Promise<unknown>): Promise<readonly string[]> {
    const statements = new Set<string>();
    await work(database.hooked({ before: async (text) => void statements.add(text) }));
    const explained = [...statements].filter((text) => /^\s*(with|select|update|delete)\b/i.test(text));
    return Promise.all(explained.map(async (text) => `${text}\n${await planOf(database, text)}`));
  }

  it.each<[DeviceFilter, RegExp]>([
    [{ serial: "filler-7" }, /devices_serial_product_id_unique/],
    [{ serialPrefix: "filler-77" }, /devices_product_id_serial_c_index/],
    [{ channel: "beta" }, /devices_product_id_channel_id_index/],
    [{ version: "1.7" }, /devices_product_id_version_id_index/],
    [{ blocked: true }, /devices_blocked_id_index/],
  ])("a search by %j reads an index", async (filter, index) => {
    const plans = await plansOf((db) => listDevices(db, { product: fleet.product, ...filter }));
    expect(plans.length).toBeGreaterThan(0);
    expect(plans.filter((plan) => GROWING.test(plan))).toEqual([]);
    expect(plans.at(-1)).toMatch(index);
  });

  it.each<[DeviceFilter, string, RegExp]>([
    [{ group: "rare" }, `'{rare}'`, /devices_groups_index/],
    [{ attribute: { name: "old", value: "yes" } }, `'{"old":"yes"}'`, /devices_attributes_index/],
  ])("a search by %j is planned for its value, and reads the index of that", async (filter, value, index) => {
    const statements: string[] = [];
    const db = database.hooked({ before: async (text) => void statements.push(text) });
    await listDevices(db, filter);
    const [text = ""] = statements.filter((statement) => statement.includes("@>"));
    expect(statements.slice(0, statements.indexOf(text)).join("\n")).toContain("force_custom_plan");
    const parameters = `(9223372036854775807, ${value}, 51)`;
    const results = (await database.query(`
      set plan_cache_mode = force_custom_plan;
      prepare statement as ${text};
      explain execute statement${parameters};
      deallocate statement;
      reset plan_cache_mode;
    `)) as unknown as Record<string, string>[][];
    expect(JSON.stringify(results)).toMatch(index);
  });

  it("a check, a report, a download and attributes through a gateway read indexes, and so does a deletion", async () => {
    const { token } = await createGatewayToken(database.db, { actor: SYSTEM, product: fleet.product, name: "gateway" });
    const gateway = { tokenHash: hashToken(token), serial: "new" };
    const own = { tokenHash: (await fleet.device()).tokenHash };
    const { id: deviceId } = await fleet.device();
    const firmwareId = deviceId;
    const plans = await plansOf(async (db) => {
      const checks = startChecks(db);
      for (const credentials of [gateway, own]) {
        await checks.checkForUpdate({ ...credentials, reported: { attributes: { modem: "1" } } });
        await recordAttributes(db, { ...credentials, attributes: { modem: "2" } });
        await Promise.allSettled([
          checks.recordReport({ ...credentials, attemptId: 1, report: { state: "failed" } }),
          findArtifactForDevice(db, { ...credentials, firmwareId }),
        ]);
      }
      await deleteDevice(db, { actor: SYSTEM, deviceId });
      await checks.close();
    });
    expect(plans.length).toBeGreaterThan(10);
    expect(plans.filter((plan) => GROWING.test(plan))).toEqual([]);
  });

  it("a list of which some are there already reads indexes", async () => {
    const lines = ["filler-1", "filler-49999", "brand-new"].map((serial, line) => {
      return { line, device: { serial, attributes: { listed: true } } };
    });
    const plans = await plansOf((db) =>
      registerDevices(db, { actor: SYSTEM, product: fleet.product, lines, existing: "update" }),
    );
    // The list's insert; its lock, its look and its update; the audit log's are inserts.
    expect(plans.filter((plan) => plan.includes("devices")).length).toBeGreaterThan(3);
    expect(plans.filter((plan) => GROWING.test(plan))).toEqual([]);
  });
});

const SYSTEM = { kind: "system" } as const;
