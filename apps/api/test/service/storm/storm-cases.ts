import { mkdtemp, rm } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import {
  hasPostgresBinaries,
  hasRedis,
  type PostgresServer,
  type RedisServer,
  startPostgres,
  startRedis,
} from "@ota/testkit";
import postgresClient from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createCheckSender } from "../check-storm.ts";
import { Ledger } from "./ledger.ts";
import { seededRandom, seedOfRun } from "./seeded-random.ts";
import { ServiceFleet } from "./service-fleet.ts";
import { auditDatabase, auditReports, rolloutLines } from "./storm-audit.ts";
import { type StormContext, StormDevice } from "./storm-device.ts";
import { type FaultCounts, StormFaults } from "./storm-faults.ts";
import { prepareFleet, type StormCaps } from "./storm-fleet.ts";

/** How much of it is run. The checks are `devices × rounds × checksAtOnce`, and one more after most installs. */
export interface StormSize {
  readonly processes: number;
  readonly devices: number;
  readonly rounds: number;
  readonly checksAtOnce: number;
  /** How many devices are in a round at the same time. */
  readonly devicesAtOnce: number;
  readonly caps: StormCaps;
  readonly faults: FaultCounts;
  /** How long a second of `Retry-After` is to a device. */
  readonly retrySecondMs: number;
  /** More of the service's environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The least part of the checks that must have been answered with a decision: else nothing would have been proven. */
const MIN_ANSWERED = 0.5;

/** The proof that nothing is doubled, exceeded or lost while everything is killed in turn, in a given size. */
export function describeStorm(size: StormSize): void {
  describe.skipIf(!(hasPostgresBinaries && hasRedis))("a fleet in a storm of faults", { timeout: 3_600_000 }, () => {
    const seed = seedOfRun();
    let postgres: PostgresServer;
    let redis: RedisServer;
    let artifactDirectory: string;
    let services: ServiceFleet | undefined;

    beforeAll(async () => {
      [postgres, redis] = await Promise.all([
        startPostgres({ settings: { track_commit_timestamp: "on" } }),
        startRedis(),
      ]);
      artifactDirectory = await mkdtemp(join(tmpdir(), "ota-storm-"));
    });
    afterAll(async () => {
      await services?.dispose();
      await Promise.all([postgres.stop(), redis.stop()]);
      await rm(artifactDirectory, { recursive: true });
    });

    test("no record is doubled, no cap exceeded, no report lost, and no answer is another fault", async () => {
      const startedAt = performance.now();
      const log = (line: string): void => {
        console.log(`${((performance.now() - startedAt) / 1000).toFixed(1).padStart(7)} s  ${line}`);
      };
      console.log(`STORM_SEED=${seed}`);
      const random = seededRandom(seed);
      const databaseUrl = await postgres.createDatabase();
      const { caps } = size;
      const fleet = await prepareFleet(databaseUrl, { devices: size.devices, caps, random: random.fork(1) });
      log(`${fleet.length} devices are registered`);
      services = await ServiceFleet.start(size.processes, {
        ...{ DATABASE_URL: databaseUrl, REDIS_URL: redis.url, OTA_ARTIFACT_DIR: artifactDirectory },
        ...{ LOCK_TTL_MS: "3000", OTA_SWEEP_INTERVAL_MS: "1000" },
        ...size.env,
      });
      const running = services;
      const ledger = new Ledger();
      using sender = createCheckSender({ maxConnections: 500 });
      const context: StormContext = {
        ...{ sender, ledger, retrySecondMs: size.retrySecondMs },
        urlOf: (of) => running.urlOf(of),
      };
      const parts = { services, redis, postgres };
      const faults = new StormFaults({ counts: size.faults, random: random.fork(2), parts, log });
      const drawn = random.fork(3);
      const devices = fleet.map(
        (device, index) => new StormDevice({ device, name: `${index}`, random: random.fork(10 + index), context }),
      );
      const turns = Array.from({ length: size.rounds }, () => drawn.shuffled(devices)).flat();
      const load = loadavg();
      await blow(turns, { size, faults, ledger, log });
      await faults.ended();
      const seconds = (performance.now() - startedAt) / 1000;
      expect(await services.end()).toEqual(Array.from({ length: size.processes }, () => 0));

      const sql = postgresClient(databaseUrl, { max: 1, onnotice: () => {} });
      const findings = { ...(await auditDatabase(sql)), ...(await auditReports(sql, ledger.reports)) };
      const sentAgain = ledger.reports.filter(({ sent }) => sent > 1).length;
      const table = [
        `${ledger.checks} checks of ${fleet.length} devices by ${size.processes} processes in ${seconds.toFixed(0)} s, ` +
          `${ledger.answeredChecks} answered; ${faults.done} faults; load ${load.map((each) => each.toFixed(1)).join(" ")}`,
        ...ledger.table(),
        `${ledger.reports.length} reports, ${sentAgain} of them sent more than once`,
        ...(await rolloutLines(sql)),
        ...Object.entries(findings).map(([fault, count]) => `${fault.padEnd(60)} ${count}`),
      ];
      await sql.end();
      console.log(table.join("\n"));

      expect(findings).toEqual(Object.fromEntries(Object.keys(findings).map((fault) => [fault, 0])));
      expect(ledger.wrong).toEqual([]);
      expect(services.written).not.toContain('"status":500');
      expect(ledger.answeredChecks).toBeGreaterThan(MIN_ANSWERED * ledger.checks);
      expect(faults.done).toBe(Object.values(size.faults).reduce((sum, count) => sum + count));
    });
  });
}

/** Lets every device have its turns, so many at once, and breaks what is due meanwhile. */
async function blow(
  turns: readonly StormDevice[],
  run: {
    readonly size: StormSize;
    readonly faults: StormFaults;
    readonly ledger: Ledger;
    readonly log: (line: string) => void;
  },
): Promise<void> {
  const { size, faults, ledger, log } = run;
  const busy = new Map<StormDevice, Promise<void>>();
  let next = 0;
  let told = 0;
  await Promise.all(
    Array.from({ length: size.devicesAtOnce }, async () => {
      for (let turn = next++; turn < turns.length; turn = next++) {
        faults.due(turn / turns.length);
        const tenth = Math.floor((10 * turn) / turns.length);
        if (tenth > told) {
          told = tenth;
          log(`${tenth * 10} %: ${ledger.checks} checks, ${ledger.reports.length} reports`);
        }
        const device = turns[turn] as StormDevice;
        // A device has one round after the other.
        const round = (busy.get(device) ?? Promise.resolve()).then(() => device.round(size.checksAtOnce));
        busy.set(device, round);
        await round;
      }
    }),
  );
}
