import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createUpdateChecks,
  type Database,
  getUpgrade,
  listAudit,
  listDevices,
  listFirmware,
  listUpgrades,
  migrationsFolder,
  rolloutFigures,
  schema,
} from "@ota/domain";
import { LockFactory, MemoryStore } from "@ota/lock-core";
import { createTestDatabase, hasPostgres } from "@ota/testkit";
import { drizzle } from "drizzle-orm/postgres-js";
import { migrate } from "drizzle-orm/postgres-js/migrator";
import postgres from "postgres";
import { describe, expect, test } from "vitest";
import type { PostgresConfig } from "../../src/config.ts";
import { migratePostgres, SchemaOutdatedError } from "../../src/migrations.ts";

async function freshDatabase(): Promise<PostgresConfig> {
  const url = await createTestDatabase();
  return { kind: "postgres", url, poolSize: 4, connectTimeoutMs: 5000, statementTimeoutMs: 10_000 };
}

async function query(config: PostgresConfig, text: string): Promise<readonly Record<string, unknown>[]> {
  const sql = postgres(config.url, { max: 1 });
  try {
    return await sql.unsafe(text);
  } finally {
    await sql.end();
  }
}

describe.skipIf(!hasPostgres)("migratePostgres", () => {
  test("several processes that migrate at once apply each migration once", async () => {
    const config = await freshDatabase();
    await Promise.all(Array.from({ length: 4 }, () => migratePostgres(config, "auto")));
    const [applied] = await query(
      config,
      "select count(*)::int as n, count(distinct hash)::int as kinds from drizzle.__drizzle_migrations",
    );
    expect(applied?.["n"]).toBe(applied?.["kinds"]);
    expect(applied?.["n"]).toBeGreaterThan(0);
    expect(await query(config, "select 1 from pg_locks where locktype = 'advisory'")).toEqual([]);
  });

  test("off leaves an empty database alone and says what to do", async () => {
    const config = await freshDatabase();
    await expect(migratePostgres(config, "off")).rejects.toThrow(SchemaOutdatedError);
    await expect(migratePostgres(config, "off")).rejects.toThrow(/OTA_MIGRATE=only/);
    expect(await query(config, "select 1 from pg_class where relname = 'devices'")).toEqual([]);
  });

  test("off accepts a schema that is as new, or newer", async () => {
    const config = await freshDatabase();
    await migratePostgres(config, "auto");
    await migratePostgres(config, "off");
    await query(config, "insert into drizzle.__drizzle_migrations (hash, created_at) values ('newer', 9999999999999)");
    await migratePostgres(config, "off");
  });

  test("data of the first schema are read by the code of now, and counted", async () => {
    const config = await freshDatabase();
    await migrateToSchema(config, { migrations: 1 });
    await query(config, FLEET_OF_THE_FIRST_SCHEMA);
    await migratePostgres(config, "auto");
    await withDatabase(config, async (db) => {
      const [firmware] = (await listFirmware(db, { product: "thermostat" })).items;
      expect(firmware).toMatchObject({
        version: "1.1.0",
        state: "released",
        artifact: { sizeBytes: 8, sha1: "b".repeat(40), md5: "c".repeat(32) },
        rollouts: [{ channel: "stable", state: "running", percentageBasisPoints: 10_000 }],
      });
      const { items: devices } = await listDevices(db, { product: "thermostat" });
      expect(devices.map(({ serial, reportedVersion }) => [serial, reportedVersion])).toEqual([
        ["attic", null],
        ["cellar", "1.1.0"],
        ["kitchen", "1.0.0"],
      ]);
      const { items: upgrades } = await listUpgrades(db, {});
      expect(upgrades.map(({ device, attempt }) => [device.serial, attempt.state])).toEqual([
        ["cellar", "succeeded"],
        ["kitchen", "failed"],
      ]);
      const history = await getUpgrade(db, { upgradeId: upgrades[1]?.id ?? "" });
      expect(history.attempts[0]?.events.map(({ toState }) => toState)).toEqual(["offered", "failed"]);
      expect((await listAudit(db, {})).items).toMatchObject([{ action: "product.create", subjectId: "thermostat" }]);

      const [kept] = await db.select().from(schema.rollouts);
      expect(kept).toMatchObject({
        groups: [],
        attributeFilter: null,
        phases: [],
        maxConcurrent: null,
        pausedBy: null,
      });
      const [device] = await db.select().from(schema.devices);
      expect(device).toMatchObject({ groups: [], attributes: {}, registeredBy: "operator", timeZone: null });
      const figures = await db.select().from(schema.figures);
      expect(figures.map(({ kind, key, count }) => `${kind} ${key} ${count}`).sort()).toEqual([
        "product_version  1",
        "product_version 1.0.0 1",
        "product_version 1.1.0 1",
        "rollout_failure failed:7:disk full at # 1",
        "rollout_state failed 1",
        "rollout_state succeeded 1",
      ]);
    });
  });

  test("a device of the first schema is offered what is released there, by its old token", async () => {
    const config = await freshDatabase();
    await migrateToSchema(config, { migrations: 1 });
    await query(config, FLEET_OF_THE_FIRST_SCHEMA);
    await migratePostgres(config, "auto");
    await withDatabase(config, async (db) => {
      const checks = createUpdateChecks({ db, locks: new LockFactory(new MemoryStore()), logger: console });
      const answerTo = async (name: string) => {
        const [device] = await query(config, `select sha256('${name}') as hash`);
        return checks.checkForUpdate({ tokenHash: device?.["hash"] as Buffer });
      };
      expect(await answerTo("attic")).toMatchObject({ decision: "update", firmware: { version: "1.1.0" } });
      expect(await answerTo("cellar")).toMatchObject({ decision: "none", reason: "UP_TO_DATE" });
      await checks.close();
    });
  });

  test("steps of before are counted, and so are those that are written while the migration waits", async () => {
    const config = await freshDatabase();
    await migrateToSchema(config, { migrations: 8 });
    await query(config, FLEET_OF_THE_FIRST_SCHEMA);
    await query(config, STEP);
    await query(config, stepOf("cellar"));
    const writer = postgres(config.url, { max: 1 });
    const late = postgres(config.url, { max: 1 });
    try {
      let migrated: Promise<unknown> = Promise.resolve();
      let written: Promise<unknown> = Promise.resolve();
      await writer.begin(async (tx) => {
        await tx.unsafe(stepOf("attic"));
        migrated = migratePostgres(config, "auto");
        await lockIsAwaited(config, "ShareRowExclusiveLock");
        written = late.unsafe(stepOf("kitchen")).execute();
        await lockIsAwaited(config, "RowExclusiveLock");
      });
      await Promise.all([migrated, written]);
    } finally {
      await Promise.all([writer.end(), late.end()]);
    }
    await withDatabase(config, async (db) => {
      const [rollout] = await db.select().from(schema.rollouts);
      const figures = await rolloutFigures(db, { rolloutId: rollout?.publicId ?? "" });
      expect(figures.versions).toMatchObject([
        { firmware: { version: "1.1.0" }, attempts: { succeeded: 1, failed: 1, cancelled: 0 } },
        { firmware: { version: "1.0.5" }, attempts: { succeeded: 0, failed: 0, cancelled: 3 } },
      ]);
    });
  });

  test("what the version before writes is still taken, so that both can run at once", async () => {
    const config = await freshDatabase();
    await migratePostgres(config, "auto");
    await query(config, FLEET_OF_THE_FIRST_SCHEMA);
    await query(config, "update upgrade_attempts set state = 'timed_out' where state = 'failed'");
    const figures = await query(
      config,
      "select key, sum(delta)::int as n from figure_deltas where kind = 'rollout_state' group by key having sum(delta) <> 0",
    );
    expect(figures).toHaveLength(2);
    expect(figures).toEqual(
      expect.arrayContaining([
        { key: "succeeded", n: 1 },
        { key: "timed_out", n: 1 },
      ]),
    );
  });
});

/** Applies the first migrations alone, as an earlier version of the service did. */
async function migrateToSchema(config: PostgresConfig, { migrations }: { readonly migrations: number }): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "older-schema-"));
  try {
    await cp(migrationsFolder, folder, { recursive: true });
    const file = join(folder, "meta", "_journal.json");
    const journal = JSON.parse(await readFile(file, "utf8")) as { entries: unknown[] };
    await writeFile(file, JSON.stringify({ ...journal, entries: journal.entries.slice(0, migrations) }));
    const client = postgres(config.url, { max: 1, onnotice: () => {} });
    await migrate(drizzle(client), { migrationsFolder: folder });
    await client.end();
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function withDatabase(config: PostgresConfig, use: (db: Database) => Promise<void>): Promise<void> {
  const client = postgres(config.url, { max: 2 });
  try {
    await use(drizzle(client, { schema }));
  } finally {
    await client.end();
  }
}

/** Until somebody waits for such a lock on the attempts. */
async function lockIsAwaited(config: PostgresConfig, mode: string): Promise<void> {
  await expect
    .poll(
      () =>
        query(
          config,
          `select from pg_locks where not granted and relation = 'upgrade_attempts'::regclass and mode = '${mode}'`,
        ),
      { timeout: 10_000 },
    )
    .toHaveLength(1);
}

/** A firmware on the way to the one that is rolled out, and an attempt on it. */
const STEP = `
  insert into firmware (public_id, product_id, version, canonical_version, state, size_bytes, sha256, sha1, md5, file_name,
    content_type, released_at)
  select gen_random_uuid(), id, '1.0.5', '1.0.5', 'released', 8, repeat('d', 64), repeat('b', 40), repeat('c', 32),
    'f.bin', 'application/octet-stream', now()
  from products;
`;

const stepOf = (serial: string) => `
  with upgrade as (
    insert into upgrades (public_id, device_id, firmware_id, rollout_id)
    select gen_random_uuid(), devices.id, firmware.id, rollouts.id
    from devices, firmware, rollouts where serial = '${serial}' and version = '1.0.5'
    returning *
  )
  insert into upgrade_attempts (upgrade_id, device_id, firmware_id, rollout_id, n, state, closed_at)
  select id, device_id, firmware_id, rollout_id, 1, 'cancelled', now() from upgrade;
`;

/** Three devices, by SQL that knows the first schema's columns only. Each one's token is its serial. */
const FLEET_OF_THE_FIRST_SCHEMA = `
  insert into products (name, version_scheme, confirm_by, poll_interval_seconds, catalog_revision)
  values ('thermostat', 'semver', 'version', 300, 7);

  insert into firmware (public_id, product_id, version, canonical_version, state, size_bytes, sha256, sha1, md5, file_name,
    content_type, released_at)
  select gen_random_uuid(), id, '1.1.0', '1.1.0', 'released', 8, repeat('a', 64), repeat('b', 40), repeat('c', 32),
    'f.bin', 'application/octet-stream', now()
  from products;

  insert into rollouts (public_id, firmware_id, channel, state) select gen_random_uuid(), id, 'stable', 'running' from firmware;

  insert into devices (public_id, product_id, serial, token_hash, channel, reported_version)
  select gen_random_uuid(), products.id, serial, sha256(serial::bytea), 'stable', version
  from products, (values (1, 'kitchen', '1.0.0'), (2, 'cellar', '1.1.0'), (3, 'attic', null)) d (n, serial, version)
  order by n;

  insert into upgrades (public_id, device_id, firmware_id, rollout_id)
  select gen_random_uuid(), devices.id, firmware.id, rollouts.id
  from devices, firmware, rollouts where serial <> 'attic' order by devices.id;

  insert into upgrade_attempts (upgrade_id, device_id, firmware_id, rollout_id, n, state, last_seq, failure_code,
    failure_message, closed_at)
  select upgrades.id, device_id, firmware_id, rollout_id, 1, outcome.state, 2, code, message, now()
  from upgrades join devices on devices.id = device_id
  join (values ('kitchen', 'failed', 7, 'disk full at 4096'), ('cellar', 'succeeded', null, null))
    outcome (serial, state, code, message) on outcome.serial = devices.serial;

  insert into attempt_events (attempt_id, seq, to_state)
  select id, seq, case seq when 1 then 'offered' else state end from upgrade_attempts, generate_series(1, 2) seq;

  insert into audit_log (public_id, actor_kind, action, subject_id, after)
  values (gen_random_uuid(), 'system', 'product.create', 'thermostat', '{"name": "thermostat"}');
`;
