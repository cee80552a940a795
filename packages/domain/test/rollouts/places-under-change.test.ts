import { randomUUID } from "node:crypto";
import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  cancelUpgrade,
  changeAllowList,
  deleteDevice,
  listUpgrades,
  OtaError,
  type ReportedState,
  type RolloutStep,
  registerDevices,
  resetUpgrade,
  settleRollouts,
  takeRolloutStep,
  timeOutAttempts,
  updateRollout,
} from "../../src/index.ts";
import { createFleet, startChecks } from "../support/fleet.ts";
import { openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";
import { runJob } from "../support/run-job.ts";

const actor = { kind: "system" } as const;
const DEVICES = 60;
const ROUNDS = 3_000;
const WORKERS = 24;

describe.skipIf(!hasPostgres)("the places of rollouts that change", () => {
  let database: PostgresTestDatabase;
  beforeAll(async () => {
    database = await openPostgresClient();
  });
  afterAll(() => database.close());

  /**
   * Everything that takes or gives a place, and whatever locks the same rows, by several processes at once. In any order of
   * locks but one, some of it would end in a deadlock.
   */
  it("are counted exactly, and nobody waits for another in a circle", async () => {
    const { db, query } = database;
    const fleet = await createFleet(db, { confirmBy: "report" });
    const rollouts: string[] = [];
    for (const version of ["2.0.0", "3.0.0", "4.0.0"]) {
      await fleet.release(version, { startRollout: false });
      const limits = { maxAttempts: 100, backoffSeconds: 0, maxConcurrent: 20, priority: 0 };
      const terms = { ...limits, successThreshold: 30, errorThreshold: { failureBasisPoints: 9_000, minOutcomes: 10 } };
      rollouts.push((await fleet.rollout(version, terms)).id);
    }
    const processes = [1, 2, 3].map(() => startChecks(database.hooked({}), { settings: { lastSeenFlushMs: 20 } }));
    const devices = await Promise.all(Array.from({ length: DEVICES }, () => fleet.device(randomUUID())));
    const random = <T>(list: readonly T[]) => list[Math.floor(Math.random() * list.length)] as T;
    const told: { readonly tokenHash: Buffer; readonly attemptId: number }[] = [];
    const errors: Record<string, number> = {};
    const done: Record<string, number> = {};

    const works: Record<string, () => Promise<unknown>> = {
      async check() {
        const { tokenHash } = random(devices);
        const answer = await random(processes).checkForUpdate({
          tokenHash,
          reported: { version: random(["1.0.0", "1.0.1"]) },
        });
        const words = answer.decision === "update" ? answer.how : answer.reason;
        done[words] = (done[words] ?? 0) + 1;
        if (answer.decision === "update") told.push({ tokenHash, attemptId: answer.attempt.id });
      },
      async report() {
        const [one] = told.splice(Math.floor(Math.random() * told.length), 1);
        const states: readonly ReportedState[] = ["downloading", "installing", "failed", "succeeded", "cancelled"];
        if (one !== undefined) await random(processes).recordReport({ ...one, report: { state: random(states) } });
      },
      async priority() {
        const rolloutId = random(rollouts);
        await takeRolloutStep(db, { actor, rolloutId, step: "pause" });
        await updateRollout(db, {
          actor,
          rolloutId,
          priority: random([1, 2, 3, 4, 5]),
          maxConcurrent: random([5, 20]),
        });
        await takeRolloutStep(db, { actor, rolloutId, step: "resume" });
      },
      step: () =>
        takeRolloutStep(db, { actor, rolloutId: random(rollouts), step: random<RolloutStep>(["pause", "resume"]) }),
      allow: () =>
        changeAllowList(db, {
          ...{ actor, rolloutId: random(rollouts), change: random(["allow", "disallow"] as const) },
          deviceIds: [random(devices).id, random(devices).id, random(devices).id],
        }),
      async remove() {
        const index = Math.floor(Math.random() * devices.length);
        const [gone] = devices.splice(index, 1);
        devices.push(await fleet.device(randomUUID()));
        await deleteDevice(db, { actor, deviceId: gone?.id ?? "", endsAttempt: true });
      },
      async cancel() {
        const { items } = await listUpgrades(db, { deviceId: random(devices).id });
        if (items.length > 0) await cancelUpgrade(db, { actor, upgradeId: random(items).id });
      },
      async reset() {
        const { items } = await listUpgrades(db, { deviceId: random(devices).id });
        if (items.length > 0) await resetUpgrade(db, { actor, upgradeId: random(items).id });
      },
      bulk: () =>
        registerDevices(db, {
          ...{ actor, product: fleet.product, existing: "update" },
          lines: Array.from({ length: 20 }, () => random(devices).serial)
            .filter((serial, index, all) => all.indexOf(serial) === index)
            .map((serial, line) => ({ line, device: { serial, attributes: { at: Math.random() } } })),
        }),
      async silence() {
        // The test's own statement waits for nobody, so that a circle can be the product's alone.
        await query(`update upgrade_attempts set deadline_at = now() where id in (
          select id from upgrade_attempts where closed_at is null and random() < 0.2 for update skip locked)`);
        await runJob(db, timeOutAttempts({ intervalMs: 1 }));
      },
      settle: () => runJob(db, settleRollouts({ intervalMs: 1 })),
    };
    const often = [...Array(30).fill("check"), ...Array(15).fill("report"), ...Object.keys(works)] as string[];
    let left = ROUNDS;
    await Promise.all(
      Array.from({ length: WORKERS }, async () => {
        while (left > 0) {
          left -= 1;
          const name = random(often);
          try {
            await works[name]?.();
          } catch (error) {
            const code = error instanceof OtaError ? error.code : String((error as Error).cause ?? error);
            errors[`${name} ${code}`] = (errors[`${name} ${code}`] ?? 0) + 1;
          }
        }
      }),
    );
    await Promise.all(processes.map((one) => one.close()));
    const rows = await query(`
      select c.live, count(*) filter (where a.closed_at is null)::int as open, c.granted,
        count(distinct a.device_id)::int as devices
      from rollout_counters c left join upgrade_attempts a using (rollout_id) group by c.rollout_id order by c.rollout_id
    `);
    expect(rows).toHaveLength(rollouts.length);
    for (const { live, open, granted, devices } of rows) {
      expect(live).toBe(open);
      // What a deleted device has had stays counted.
      expect(granted).toBeGreaterThanOrEqual(devices as number);
    }
    expect(done["created"]).toBeGreaterThan(100);
    expect(Object.keys(errors).filter((one) => !/ [A-Z_]+$/.test(one))).toEqual([]);
    expect(processes.flatMap(({ warnings }) => warnings)).toEqual([]);
  }, 120_000);
});
