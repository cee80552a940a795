import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  hasPostgresBinaries,
  hasRedis,
  type PostgresServer,
  type RedisServer,
  startPostgres,
  startRedis,
  until,
} from "@ota/testkit";
import postgresClient, { type Sql } from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call } from "../service/operator-client.ts";
import { type ListeningService, startServiceProcess, TEST_OPERATOR_KEY } from "../service/service-process.ts";
import { seededRandom, seedOfRun } from "../service/storm/seeded-random.ts";
import { auditDatabase } from "../service/storm/storm-audit.ts";
import { DdiSender } from "./ddi-sender.ts";
import { LoadDevice } from "./load-device.ts";
import { type FinalStatus, LoadLedger } from "./load-ledger.ts";

/** How much of it is run. */
export interface LoadSize {
  readonly devices: number;
  /** How long a second of a pause is to a device. */
  readonly secondMs: number;
  /** More of the service's environment. */
  readonly env: Readonly<Record<string, string>>;
}

const PROCESSES = 2;

/** The proof that a fleet of hawkBit's clients, all at once, loses no last word while Redis is killed. */
export function describeLoad(size: LoadSize): void {
  describe.skipIf(!(hasPostgresBinaries && hasRedis))("a fleet of DDI devices", { timeout: 900_000 }, () => {
    let postgres: PostgresServer;
    let redis: RedisServer;
    let artifactDirectory: string;
    let services: readonly ListeningService[] = [];
    let databaseUrl: string;

    beforeAll(async () => {
      [postgres, redis] = await Promise.all([
        startPostgres({ settings: { track_commit_timestamp: "on" } }),
        startRedis(),
      ]);
      artifactDirectory = await mkdtemp(join(tmpdir(), "ota-ddi-load-"));
      databaseUrl = await postgres.createDatabase();
      const env = {
        ...{ DATABASE_URL: databaseUrl, REDIS_URL: redis.url, OTA_ARTIFACT_DIR: artifactDirectory },
        ...size.env,
      };
      services = await Promise.all(Array.from({ length: PROCESSES }, () => startServiceProcess({ env })));
    });
    afterAll(async () => {
      await Promise.all(services.map((service) => service.dispose()));
      await Promise.all([postgres.stop(), redis.stop()]);
      await rm(artifactDirectory, { recursive: true });
    });

    test("no last word is lost with Redis killed in the middle, and no feedback is answered 5xx", async () => {
      const seed = seedOfRun();
      const random = seededRandom(seed);
      const urls = services.map(({ url }) => url);
      const { tokens, sha256 } = await prepare(urls[0] ?? "", size.devices);
      const ledger = new LoadLedger();
      using sender = new DdiSender();
      const context = { sender, ledger, urls, secondMs: size.secondMs, sha256 };
      const devices = tokens.map(
        (token, index) => new LoadDevice({ serial: serialOf(index), token, random: random.fork(index), context }),
      );

      const startedAt = performance.now();
      // Not all at once: their offers would be made by a few statements, and none be left when Redis is killed.
      const running = Promise.all(
        devices.map(async (device, index) => {
          await new Promise((resolve) => setTimeout(resolve, (index * 1_000) / size.devices));
          await device.run();
        }),
      );
      const outage = (async () => {
        await until("a third is offered", async () => ledger.offers >= size.devices / 3, 300_000);
        await redis.kill();
        const atOffers = ledger.offers;
        await until("half are done", async () => ledger.finals.length >= size.devices / 2, 600_000);
        await redis.restart();
        return atOffers;
      })();
      const [killedAtOffers] = await Promise.all([outage, running]);
      const seconds = (performance.now() - startedAt) / 1000;

      const sql = postgresClient(databaseUrl, { max: 1, onnotice: () => {} });
      const lost = await lostFinals(sql, ledger.finals);
      const findings = await auditDatabase(sql);
      await sql.end();
      console.log(
        [
          `STORM_SEED=${seed}`,
          `${size.devices} devices, ${ledger.requests} requests in ${seconds.toFixed(1)} s; Redis was killed when ` +
            `${killedAtOffers} had an offer`,
          ...ledger.table(),
          `${ledger.finals.length} last words, ${lost.length} lost`,
        ].join("\n"),
      );
      expect(ledger.finals).toHaveLength(size.devices);
      expect(lost).toEqual([]);
      expect(killedAtOffers).toBeLessThan(size.devices);
      expect(ledger.kinds(/^(last )?feedback: (5\d\d|connection lost)/)).toEqual({});
      expect(ledger.kinds(/: (500|4(?!04|10|29)\d\d)/)).toEqual({});
      expect(findings).toEqual(Object.fromEntries(Object.keys(findings).map((fault) => [fault, 0])));
    });
  });
}

function serialOf(index: number): string {
  return `cam-${index}`;
}

/** A firmware that is offered to as many devices, which bring their tokens with them. */
async function prepare(url: string, count: number): Promise<{ tokens: readonly string[]; sha256: string }> {
  await call(url, "/v1/products", { json: { name: "cam", confirmBy: "report" } });
  await call(url, "/v1/products/cam", { method: "PATCH", json: { hardwareAttribute: "board" } });
  const bytes = randomBytes(64 * 1024);
  const firmware = await call(url, "/v1/products/cam/firmware?version=2.0.0&fileName=cam.swu", { bytes });
  await call(url, `/v1/firmware/${firmware.body.id}/release`, { json: { startRollout: true } });
  const tokens = Array.from({ length: count }, () => randomBytes(16).toString("hex"));
  const registered = await fetch(`${url}/v1/products/cam/devices/bulk`, {
    method: "POST",
    headers: { authorization: `Bearer ${TEST_OPERATOR_KEY}`, "content-type": "application/x-ndjson" },
    body: tokens.map((token, index) => JSON.stringify({ serial: serialOf(index), token })).join("\n"),
  });
  expect(registered.status, await registered.text()).toBeLessThan(300);
  return { tokens, sha256: createHash("sha256").update(bytes).digest("hex") };
}

/** Last words that were answered 2xx and are not kept, or were sent as often as a client does and never answered 2xx. */
async function lostFinals(sql: Sql, finals: readonly FinalStatus[]): Promise<readonly FinalStatus[]> {
  const rows = await sql<{ id: number; state: string; mark: string }[]>`
    select a.id::int as id, a.state, e.details[2] as mark
    from upgrade_attempts a join attempt_events e on e.attempt_id = a.id and e.to_state = a.state
    where a.closed_at is not null`;
  const kept = new Set(rows.map(({ id, state, mark }) => `${id} ${state} ${mark}`));
  return finals.filter(
    ({ attemptId, state, mark, isAnswered }) => !isAnswered || !kept.has(`${attemptId} ${state} ${mark}`),
  );
}
