import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase, hasPostgres, hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createFleet, type Fleet } from "./fleet.ts";
import { type ListeningService, startServiceProcess } from "./service-process.ts";

/**
 * After SIGUSR2 the process stops itself, as by SIGSTOP, in front of its next BEGIN: it has seen that it holds the lease,
 * and has written nothing.
 */
const STOP_BEFORE_BEGIN = `
  import { Socket } from "node:net";
  let armed = false;
  process.on("SIGUSR2", () => { armed = true; });
  const { write } = Socket.prototype;
  Socket.prototype.write = function (data, ...rest) {
    if (armed && Buffer.from(data).includes("begin")) {
      armed = false;
      process.kill(process.pid, "SIGSTOP");
    }
    return write.call(this, data, ...rest);
  };
`;

describe.skipIf(!(hasPostgres && hasRedis))("the sweeper of several processes", { timeout: 120_000 }, () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  let fleet: Fleet;
  let databaseUrl: string;
  let artifactDirectory: string;
  const services: ListeningService[] = [];
  beforeEach(async () => {
    databaseUrl = await createTestDatabase();
    artifactDirectory = await mkdtemp(join(tmpdir(), "ota-sweeper-"));
  });
  afterEach(async () => {
    await Promise.all(services.splice(0).map((service) => service.dispose()));
    await fleet[Symbol.asyncDispose]();
    await rm(artifactDirectory, { recursive: true });
  });

  async function start(options: { ttlMs?: number; locks?: "redis" | "memory"; preload?: string } = {}) {
    const { ttlMs = 1_500, locks = "redis", preload = "" } = options;
    const service = await startServiceProcess({
      env: {
        DATABASE_URL: databaseUrl,
        OTA_ARTIFACT_DIR: artifactDirectory,
        ...(locks === "redis" ? { REDIS_URL: redis.url, LOCK_KEY_PREFIX: `${databaseUrl.slice(-20)}:` } : {}),
        LOCK_TTL_MS: String(ttlMs),
        OTA_SWEEP_INTERVAL_MS: "200",
      },
      preload,
    });
    services.push(service);
    return service;
  }

  const until = (message: string, condition: () => Promise<boolean>) =>
    expect.poll(condition, { message, timeout: 30_000 }).toBe(true);

  /** Devices with an open attempt each that is past its deadline. */
  async function silentAttempts(count: number): Promise<void> {
    await fleet.sql`
      with offer as (
        select r.id as rollout_id, f.id as firmware_id, f.product_id
        from rollouts r join firmware f on f.id = r.firmware_id limit 1
      ), device as (
        insert into devices (public_id, product_id, serial, channel, token_hash)
        select gen_random_uuid(), product_id, 's-' || gen_random_uuid(), 'stable',
          sha256(convert_to(gen_random_uuid()::text, 'utf8'))
        from offer, generate_series(1, ${count}) returning id
      ), upgrade as (
        insert into upgrades (public_id, device_id, firmware_id, rollout_id)
        select gen_random_uuid(), device.id, firmware_id, rollout_id from device, offer returning *
      )
      insert into upgrade_attempts (upgrade_id, device_id, firmware_id, rollout_id, n, state, deadline_at)
      select id, device_id, firmware_id, rollout_id, 1, 'downloading', now() - interval '1 second' from upgrade`;
  }

  const allEnded = () =>
    until("every attempt is closed", async () => {
      const [row] = await fleet.sql`select count(*)::int as open from upgrade_attempts where closed_at is null`;
      return row?.["open"] === 0;
    });

  /** How many attempts have how many events that ended them. */
  const endings = async () => {
    const rows = await fleet.sql`
      select ends, count(*)::int as attempts from (
        select a.id, count(*) filter (where e.to_state = 'timed_out') as ends, max(e.seq) as last, a.last_seq
        from upgrade_attempts a left join attempt_events e on e.attempt_id = a.id group by a.id
      ) each_one where last = last_seq group by ends`;
    return Object.fromEntries(rows.map(({ ends, attempts }) => [ends, attempts]));
  };

  const toldOf = ({ log }: ListeningService) =>
    until("the log tells of it", async () => log().includes('"job":"time-out-attempts","rows":'));

  type Fences = ReadonlyMap<string, bigint>;
  const fences = async (): Promise<Fences> => {
    const rows = await fleet.sql<{ name: string; fence: string | null }[]>`select name, fence from background_jobs`;
    return new Map(rows.map(({ name, fence }) => [name, BigInt(fence ?? 0)]));
  };

  /** Resolves once every job that has ever begun is done under a newer lease than before. */
  const leads = async (earlier: Fences = new Map()): Promise<Fences> => {
    await until("one process leads the jobs", async () => {
      const now = await fences();
      return now.has("time-out-attempts") && [...now].every(([job, fence]) => fence > (earlier.get(job) ?? 0n));
    });
    return fences();
  };

  test("one is killed while it holds the locks: another one takes over when their TTL has ended", async () => {
    const one = await start();
    fleet = await createFleet(databaseUrl);
    const first = await leads();
    const other = await start();
    one.kill("SIGKILL");
    await one.exited;
    await silentAttempts(500);
    await allEnded();
    await leads(first);
    expect(await endings()).toEqual({ 1: 500 });
    await toldOf(other);
  });

  test("one is stopped past its lease in front of a write, and goes on: the write is refused", async () => {
    const one = await start({ preload: STOP_BEFORE_BEGIN });
    fleet = await createFleet(databaseUrl);
    const first = await leads();
    one.kill("SIGUSR2");
    await start();
    // Only when the first one has stopped does its lease end.
    const second = await leads(first);
    await silentAttempts(100);
    await allEnded();
    one.kill("SIGCONT");
    await until("its write was refused", async () => {
      return one.log().includes("A newer holder of the lock has done this background job");
    });
    await silentAttempts(100);
    await allEnded();
    for (const [job, fence] of await fences()) expect(fence >= (second.get(job) ?? 0n)).toBe(true);
    expect(await endings()).toEqual({ 1: 200 });
  });

  test("two that do not see each other's locks work at once: each attempt is closed once", async () => {
    const both = await Promise.all([start({ locks: "memory" }), start({ locks: "memory" })]);
    fleet = await createFleet(databaseUrl);
    await fleet.sql`insert into rollout_counters (rollout_id, revision, live) select id, revision, 3000 from rollouts`;
    await silentAttempts(3_000);
    await allEnded();
    expect(await endings()).toEqual({ 1: 3_000 });
    expect(await fleet.sql`select live, failed from rollout_counters`).toEqual([{ live: 0, failed: 3_000 }]);
    // Neither has kept the other from working: both have ended some.
    for (const one of both) await toldOf(one);
  });

  test("one is ended by a signal: it gives its locks back, and another one need not wait for their TTL", async () => {
    const one = await start({ ttlMs: 600_000 });
    fleet = await createFleet(databaseUrl);
    const first = await leads();
    await start({ ttlMs: 600_000 });
    one.kill("SIGTERM");
    expect(await one.exited).toBe(0);
    await leads(first);
    await silentAttempts(10);
    await allEnded();
  });
});
