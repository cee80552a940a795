import { hasPostgres } from "@ota/testkit";
import { and, desc, eq } from "drizzle-orm";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ATTEMPT_STATES,
  type AttemptFigures,
  type AttemptState,
  type Database,
  foldFigures,
  productFigures,
  rolloutFigures,
  schema,
  TERMINAL_ATTEMPT_STATES,
} from "../../src/index.ts";
import { newPublicId } from "../../src/public-id.ts";
import { createFleet } from "../support/fleet.ts";
import { openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";

const { devices, firmware, rollouts, upgradeAttempts, upgrades } = schema;

/** What happens to a device, each in a transaction of its own, which is undone where so drawn. */
type Happening = { readonly undone: boolean } & (
  | { readonly kind: "version"; readonly version: string | null }
  // Of one release's firmware under another's rollout, it is a step.
  | { readonly kind: "attempt"; readonly firmware: number; readonly rollout: number }
  | {
      readonly kind: "state";
      readonly state: AttemptState;
      readonly code: number | null;
      readonly message: string | null;
    }
  | { readonly kind: "delete" }
);

const undone = fc.boolean();
const happening: fc.Arbitrary<Happening> = fc.oneof(
  fc.record({
    kind: fc.constant("version"),
    version: fc.constantFrom("1.0.0", "2.0.0", "not:a:version", null),
    undone,
  }),
  fc.record({ kind: fc.constant("attempt"), firmware: fc.nat({ max: 2 }), rollout: fc.nat({ max: 1 }), undone }),
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("state"),
      state: fc.constantFrom(...ATTEMPT_STATES),
      code: fc.constantFrom(null, -1, 7),
      message: fc.constantFrom(null, "no space: 17 bytes", "no space: 4096 bytes", "a:b\nc"),
      undone,
    }),
  },
  fc.record({ kind: fc.constant("delete"), undone }),
);

describe.skipIf(!hasPostgres)("the figures of a fleet", () => {
  let database: PostgresTestDatabase;
  beforeAll(async () => {
    database = await openPostgresClient();
  });
  afterAll(() => database.close());

  it("are those that counting gives, whatever happens at once, is undone and is folded meanwhile", async () => {
    const histories = fc.array(fc.array(happening, { minLength: 1, maxLength: 12 }), { minLength: 4, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(histories, async (ofDevices) => {
        const { db } = database;
        const fleet = await aFleet(db);
        let under = true;
        const folding = (async () => {
          while (under) await fold(db);
        })();
        await Promise.all(ofDevices.map((history) => live(db, fleet, history)));
        under = false;
        await folding;
        await expectTrue(database, fleet);
        await fold(db);
        await expectTrue(database, fleet);
      }),
      { numRuns: 25 },
    );
  }, 120_000);

  it("are exact for every reader at any moment, also while they are folded", async () => {
    const { db } = database;
    const fleet = await aFleet(db);
    const DEVICES = 40;
    await Promise.all(Array.from({ length: DEVICES }, () => live(db, fleet, [])));
    let seen = 0;
    let done = false;
    const reader = async () => {
      while (!done) {
        const { devices: total, versions } = await productFigures(db, fleet);
        expect(total).toBe(DEVICES);
        expect(versions.reduce((sum, { count }) => sum + count, 0)).toBe(DEVICES);
        seen += 1;
      }
    };
    const writer = async () => {
      for (let i = 0; i < 60; i += 1) {
        const version = `1.0.${i % 3}`;
        await db.update(devices).set({ reportedVersion: version }).where(eq(devices.productId, fleet.productId));
        await fold(db);
      }
      done = true;
    };
    await Promise.all([writer(), reader(), reader(), reader()]);
    expect(seen).toBeGreaterThan(20);
  });
});

interface Fleet {
  readonly product: string;
  readonly productId: bigint;
  readonly releases: readonly Release[];
}

interface Release {
  readonly version: string;
  readonly firmwareId: bigint;
  readonly rolloutId: bigint;
  readonly publicId: string;
}

async function aFleet(db: Database): Promise<Fleet> {
  const { product, release } = await createFleet(db);
  for (const version of ["1.0.0", "2.0.0", "3.0.0"]) await release(version, { startRollout: true });
  const releases = await db
    .select({
      ...{ productId: firmware.productId, version: firmware.version },
      ...{ firmwareId: firmware.id, rolloutId: rollouts.id, publicId: rollouts.publicId },
    })
    .from(rollouts)
    .innerJoin(firmware, eq(firmware.id, rollouts.firmwareId))
    .innerJoin(schema.products, eq(schema.products.id, firmware.productId))
    .where(eq(schema.products.name, product));
  return { product, productId: releases[0]?.productId as bigint, releases };
}

/** One device's history. It is registered first, and again after it was deleted. */
async function live(db: Database, fleet: Fleet, history: readonly Happening[]): Promise<void> {
  let deviceId = await register(db, fleet);
  for (const one of history) {
    const undo = new Error("undone");
    await db
      .transaction(async (tx) => {
        await happen(tx, { deviceId, fleet, one });
        if (one.undone) throw undo;
      })
      .catch((error: unknown) => {
        if (error !== undo) throw error;
      });
    if (one.kind === "delete" && !one.undone) deviceId = await register(db, fleet);
  }
}

async function register(db: Database, { productId }: Fleet): Promise<bigint> {
  const publicId = newPublicId();
  const [row] = await db
    .insert(devices)
    .values({ publicId, productId, serial: publicId, channel: "stable" })
    .returning({ id: devices.id });
  return row?.id as bigint;
}

async function happen(
  tx: Database,
  { deviceId, fleet, one }: { readonly deviceId: bigint; readonly fleet: Fleet; readonly one: Happening },
): Promise<void> {
  switch (one.kind) {
    case "version":
      await tx.update(devices).set({ reportedVersion: one.version }).where(eq(devices.id, deviceId));
      return;
    case "attempt": {
      const { firmwareId } = fleet.releases[one.firmware] as Release;
      const { rolloutId } = fleet.releases[one.rollout] as Release;
      return openAttempt(tx, { deviceId, firmwareId, rolloutId });
    }
    case "state": {
      const newest = tx
        .select({ id: upgradeAttempts.id })
        .from(upgradeAttempts)
        .where(eq(upgradeAttempts.deviceId, deviceId))
        .orderBy(desc(upgradeAttempts.id))
        .limit(1);
      await tx
        .update(upgradeAttempts)
        .set({ state: one.state, closedAt: closedAt(one.state), failureCode: one.code, failureMessage: one.message })
        .where(eq(upgradeAttempts.id, newest));
      return;
    }
    case "delete":
      await tx.delete(upgradeAttempts).where(eq(upgradeAttempts.deviceId, deviceId));
      await tx.delete(upgrades).where(eq(upgrades.deviceId, deviceId));
      await tx.delete(devices).where(eq(devices.id, deviceId));
  }
}

/** Where one is open already it is closed first, as a check would. */
async function openAttempt(
  tx: Database,
  input: { readonly deviceId: bigint; readonly firmwareId: bigint; readonly rolloutId: bigint },
): Promise<void> {
  const { deviceId, firmwareId, rolloutId } = input;
  await tx
    .update(upgradeAttempts)
    .set({ state: "superseded", closedAt: new Date() })
    .where(eq(upgradeAttempts.deviceId, deviceId));
  await tx.insert(upgrades).values({ publicId: newPublicId(), deviceId, firmwareId, rolloutId }).onConflictDoNothing();
  const [upgrade] = await tx
    .select()
    .from(upgrades)
    .where(and(eq(upgrades.deviceId, deviceId), eq(upgrades.firmwareId, firmwareId)));
  const upgradeId = upgrade?.id as bigint;
  const n = 1 + (await tx.$count(upgradeAttempts, eq(upgradeAttempts.upgradeId, upgradeId)));
  await tx.insert(upgradeAttempts).values({ upgradeId, deviceId, firmwareId, rolloutId, n, state: "offered" });
}

function closedAt(state: AttemptState): Date | null {
  return (TERMINAL_ATTEMPT_STATES as readonly string[]).includes(state) ? new Date() : null;
}

async function fold(db: Database): Promise<void> {
  await db.transaction((tx) => foldFigures({ intervalMs: 1 }).runBatch({ tx, fence: undefined, position: null }));
}

/** Counts, and compares with what the figures say. */
async function expectTrue({ db, query }: PostgresTestDatabase, fleet: Fleet): Promise<void> {
  const counted = async (what: string, from: string) =>
    (await query(`select ${what}, count(*)::int as count from ${from} group by 1, 2, 3`)) as Record<string, unknown>[];
  const versions = await counted(
    "coalesce(reported_version, confirmed_version) as version, null as a, null as b",
    `devices where product_id = ${fleet.productId}`,
  );
  const product = await productFigures(db, { product: fleet.product, limit: 200 });
  expect(sorted(product.versions)).toEqual(sorted(versions.map(({ version, count }) => ({ version, count }))));
  expect(product.devices).toBe(versions.reduce((sum, { count }) => sum + Number(count), 0));

  const ids = fleet.releases.map(({ rolloutId }) => rolloutId);
  const pairs: { figures: AttemptFigures; of: bigint[] }[] = [{ figures: product, of: ids }];
  for (const release of fleet.releases) {
    const { rolloutId } = release;
    const figures = await rolloutFigures(db, { rolloutId: release.publicId, limit: 200 });
    pairs.push({ figures, of: [rolloutId] });
    expect(figures.versions[0]?.firmware.version).toBe(release.version);
    const brought = await counted(
      "f.version, a.state, null as a",
      `upgrade_attempts a join firmware f on f.id = a.firmware_id where a.rollout_id = ${rolloutId}`,
    );
    const told = figures.versions.flatMap(({ firmware: { version }, attempts }) =>
      ATTEMPT_STATES.map((state) => ({ version, state, a: null, count: attempts[state] })),
    );
    expect(sorted(told.filter(({ count }) => count !== 0))).toEqual(sorted(brought));
  }
  for (const { figures, of } of pairs) {
    const attempts = `upgrade_attempts where rollout_id in (${of.join(", ")})`;
    const states = await counted("state, null as a, null as b", attempts);
    expect(figures.attempts).toEqual({
      ...Object.fromEntries(ATTEMPT_STATES.map((state) => [state, 0])),
      ...Object.fromEntries(states.map(({ state, count }) => [state, count])),
    });
    const masked = "nullif(regexp_replace(coalesce(failure_message, ''), '[0-9]+', '#', 'g'), '') as message";
    const failures = await counted(
      `state, failure_code as code, ${masked}`,
      `${attempts} and state in ('failed', 'timed_out')`,
    );
    expect(sorted(figures.failures)).toEqual(sorted(failures));
  }
}

function sorted(list: readonly object[]): string[] {
  return list.map((item) => JSON.stringify(Object.entries(item).sort())).sort();
}
