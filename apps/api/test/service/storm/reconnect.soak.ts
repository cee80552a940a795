import { mkdtemp, rm } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createTestDatabase, hasPostgres, hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import postgresClient from "postgres";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { quantile } from "../check-storm.ts";
import { HerdClient } from "./herd-client.ts";
import { prepareQuietFleet, type QuietDevice } from "./quiet-fleet.ts";
import { seededRandom, seedOfRun } from "./seeded-random.ts";
import { ServiceFleet } from "./service-fleet.ts";
import { BIN_MS, servicePolicy, simulateFleet } from "./simulated-fleet.ts";

const DEVICES = 50_000;
const INTERVAL_SECONDS = 300;
const BACK_WITHIN_MS = 10_000;
const REAL_MS = 60_000;
const SIMULATED_MS = 20 * 60_000;
const TICK_MS = 20;
/** To each process; with thousands more it is the sender that falls behind, since it shares the machine with them. */
const CONNECTIONS = 1_000;
const STEADY = (DEVICES / INTERVAL_SECONDS) * (BIN_MS / 1000);

describe.skipIf(!(hasPostgres && hasRedis))("50 000 devices that come back within 10 s to two processes", () => {
  let redis: RedisServer;
  let artifactDirectory: string;
  let databaseUrl: string;
  let devices: readonly QuietDevice[];
  let services: ServiceFleet | undefined;
  /** What they answered in a second of their best ten, while nothing was turned away that need not be. */
  let checksPerSecond = 0;
  beforeAll(async () => {
    [databaseUrl, redis] = await Promise.all([createTestDatabase(), startRedis()]);
    artifactDirectory = await mkdtemp(join(tmpdir(), "ota-reconnect-"));
    devices = await prepareQuietFleet(databaseUrl, { devices: DEVICES, pollIntervalSeconds: INTERVAL_SECONDS });
  }, 300_000);
  afterEach(() => services?.dispose());
  afterAll(async () => {
    await redis.stop();
    await rm(artifactDirectory, { recursive: true });
  });

  test.each([
    ["its own limits", {}],
    // So low that they turn checks away on a machine which would be quick enough for all.
    ["limits of 10 ms", { OTA_OVERLOAD_LOOP_DELAY_MS: "10", OTA_OVERLOAD_DATABASE_DELAY_MS: "10" }],
  ])(
    "with %s: a minute of real requests, then simulated time from the hints they were given: at most twice the steady load from minute 5 on",
    async (limits, env) => {
      services = await ServiceFleet.start(2, {
        ...{ DATABASE_URL: databaseUrl, REDIS_URL: redis.url, OTA_ARTIFACT_DIR: artifactDirectory },
        ...{ OTA_OVERLOAD_SPREAD_SECONDS: String(INTERVAL_SECONDS), ...env },
      });
      const seed = seedOfRun();
      const random = seededRandom(seed);
      const comesAtMs = devices.map(() => random.unit() * BACK_WITHIN_MS);
      const unanswered = new Set(devices.keys());
      const accepted = new Array<number>(REAL_MS / BIN_MS).fill(0);
      const answered = new Array<number>((10 * REAL_MS) / BIN_MS).fill(0);
      const kinds = new Map<string, number>();
      const tookMs = { accepted: [] as number[], "turned away": [] as number[] };
      const lateMs: number[] = [];
      const load = loadavg();
      using clients = new DisposableStack();
      const herd = services.urls.map((url) => clients.use(new HerdClient(url, { connections: CONNECTIONS })));
      const epochMs = Date.now();
      const beganAt = performance.now();
      const nowMs = (): number => performance.now() - beganAt;

      const due = new Map<number, number[]>();
      const comes = (device: number, atMs: number): void => {
        comesAtMs[device] = atMs;
        const tick = Math.ceil(atMs / TICK_MS);
        due.set(tick, [...(due.get(tick) ?? []), device]);
      };
      const ask = async (device: number): Promise<void> => {
        const { token } = devices[device] as QuietDevice;
        lateMs.push(nowMs() - (comesAtMs[device] as number));
        const askedAt = nowMs();
        const client = herd[random.below(herd.length)] as HerdClient;
        const { status, word, waitSeconds, durationMs } = await client.check(token);
        const kind = `${status} ${word}`;
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
        if (status === 200) {
          const bin = Math.floor(askedAt / BIN_MS);
          accepted[bin] = (accepted[bin] ?? 0) + 1;
          const answeredBin = Math.floor(nowMs() / BIN_MS);
          answered[answeredBin] = (answered[answeredBin] ?? 0) + 1;
          unanswered.delete(device);
          tookMs.accepted.push(durationMs);
        } else if (status !== 0) {
          tookMs["turned away"].push(durationMs);
        }
        comes(device, nowMs() + (waitSeconds ?? 1 + random.unit() * 9) * 1000);
      };

      for (const [device, atMs] of comesAtMs.entries()) comes(device, atMs);
      const asking = new Set<Promise<void>>();
      for (let tick = 0; tick * TICK_MS < REAL_MS; tick += 1) {
        await sleep(Math.max(0, tick * TICK_MS - nowMs()));
        for (const device of due.get(tick) ?? []) {
          const asked = ask(device);
          asking.add(asked);
          void asked.finally(() => asking.delete(asked));
        }
        due.delete(tick);
      }
      await Promise.all(asking);
      const endedAtMs = nowMs();

      const sql = postgresClient(databaseUrl, { max: 1 });
      const [seen] = await sql`select count(*)::int as n from devices where last_seen_at is not null`;
      await sql.end();
      checksPerSecond = Math.max(checksPerSecond, Math.max(...answered) / (BIN_MS / 1000));
      const simulated = simulateFleet(
        devices.map(({ id }, device) => ({ id, comesAtMs: comesAtMs[device] as number })),
        {
          policy: servicePolicy({ intervalSeconds: INTERVAL_SECONDS }),
          checksPerSecond,
          fromMs: Math.ceil(endedAtMs / BIN_MS) * BIN_MS,
          ...{ untilMs: SIMULATED_MS, epochMs },
        },
      );
      const fromMinute5 = simulated.accepted.slice(300_000 / BIN_MS);
      const most = Math.max(...fromMinute5);
      const of = (values: readonly number[], part: number) => Math.round(quantile(values, part));
      console.log(
        [
          `With ${limits}: STORM_SEED=${seed}, load ${load.map((each) => each.toFixed(1)).join(" ")}; the requests took until ${Math.round(endedAtMs)} ms`,
          ...[...kinds].map(([kind, count]) => `${kind.padEnd(40)} ${String(count).padStart(8)}`),
          `sent after their time by: p50 ${of(lateMs, 0.5)} ms, p99 ${of(lateMs, 0.99)} ms`,
          ...Object.entries(tookMs).map(
            ([what, values]) =>
              `${what}: ${values.length}, p50 ${of(values, 0.5)} ms, p99 ${of(values, 0.99)} ms, max ${of(values, 1)} ms`,
          ),
          `accepted in each 10 s of the real minute: ${accepted.join(" ")}; ${unanswered.size} devices without an answer after it`,
          `simulated from there with ${Math.round(checksPerSecond)} checks a second: from minute 5 on at most ${most} in 10 s = ` +
            `${(most / STEADY).toFixed(2)} × steady, longest without an answer ${simulated.longestUnservedSeconds} s`,
        ].join("\n"),
      );

      // 408: the sender itself was too slow with a request that it had begun.
      expect([...kinds.keys()].filter((kind) => !/^(200|408|429|503|0) /.test(kind))).toEqual([]);
      expect(seen?.["n"]).toBeGreaterThan(0);
      expect(most).toBeLessThanOrEqual(2 * STEADY);
      expect(simulated.longestUnservedSeconds).toBeLessThanOrEqual(2 * INTERVAL_SECONDS);
    },
  );
});
