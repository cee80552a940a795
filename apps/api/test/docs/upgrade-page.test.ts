import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createTestDatabase, hasPostgres } from "@ota/testkit";
import postgres from "postgres";
import { afterEach, describe, expect, test } from "vitest";
import { call, check, seedFleet } from "../service/operator-client.ts";
import { type ListeningService, runMain, startServiceProcess } from "../service/service-process.ts";

const services: ListeningService[] = [];
const folders: string[] = [];
afterEach(async () => {
  await Promise.all(services.splice(0).map((service) => service.dispose()));
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
});

/** What all processes of an installation share. */
async function installation(): Promise<Readonly<Record<string, string>>> {
  const folder = await mkdtemp(join(tmpdir(), "ota-artifacts-"));
  folders.push(folder);
  return { DATABASE_URL: await createTestDatabase(), OTA_ARTIFACT_DIR: folder };
}

async function start(env: Readonly<Record<string, string>>): Promise<ListeningService> {
  const service = await startServiceProcess({ env: { ...env, OTA_MIGRATE: "off" } });
  services.push(service);
  return service;
}

describe.skipIf(!hasPostgres)("docs/operate-upgrade.md", { timeout: 180_000 }, () => {
  test("processes that are replaced one after the other behind a balancer leave no check unanswered", async () => {
    const env = await installation();
    expect(await runMain({ env: { ...env, OTA_MIGRATE: "only" } })).toMatchObject({ code: 0 });
    let serving = [await start(env), await start(env)];
    const { tokens } = await seedFleet(serving[0]?.url ?? "", { devices: 8 });

    const traffic = steadyTraffic({ tokens, serving: () => serving });
    for (const old of serving) {
      const renewed = await start(env);
      expect((await call(renewed.url, "/readyz", { method: "GET" })).status).toBe(200);
      serving = [...serving.filter((service) => service !== old), renewed];
      await expect.poll(() => traffic.inFlight(old), { timeout: 30_000 }).toBe(0);
      old.kill("SIGTERM");
      expect(await old.exited).toBe(0);
    }
    const { statuses, faults } = await traffic.stop();
    expect(faults).toEqual([]);
    expect([...statuses.keys()]).toEqual([200]);
    expect(statuses.get(200)).toBeGreaterThan(100);
  });

  test("with OTA_SHUTDOWN_DELAY_MS, SIGTERM alone is enough where the balancer goes by /readyz", async () => {
    const env = { ...(await installation()), OTA_SHUTDOWN_DELAY_MS: "3000" };
    expect(await runMain({ env: { ...env, OTA_MIGRATE: "only" } })).toMatchObject({ code: 0 });
    const processes = [await start(env), await start(env)];
    const { tokens } = await seedFleet(processes[0]?.url ?? "", { devices: 8 });
    let serving: readonly ListeningService[] = processes;
    const traffic = steadyTraffic({ tokens, serving: () => serving });
    for (const old of processes) {
      const renewed = await start(env);
      serving = [...serving, renewed];
      old.kill("SIGTERM");
      // The balancer, which sends requests there until it has asked again.
      for (let ready = true; ready; ready = (await call(old.url, "/readyz", { method: "GET" })).status === 200)
        await sleep(1000);
      serving = serving.filter((service) => service !== old);
      expect(await old.exited).toBe(0);
    }
    const { statuses, faults } = await traffic.stop();
    expect(faults).toEqual([]);
    expect([...statuses.keys()]).toEqual([200]);
    expect(statuses.get(200)).toBeGreaterThan(100);
  });

  test("while a migration holds the tables, devices are told to come back; afterwards they are served", async () => {
    const env = await installation();
    await runMain({ env: { ...env, OTA_MIGRATE: "only" } });
    const service = await start({ ...env, OTA_DATABASE_STATEMENT_TIMEOUT_MS: "500" });
    const { tokens } = await seedFleet(service.url, { devices: 1 });
    const [token = ""] = tokens;
    const sql = postgres(env["DATABASE_URL"] ?? "", { max: 1 });
    try {
      await sql.begin(async (migration) => {
        await migration`lock table devices, upgrade_attempts in access exclusive mode`;
        const answer = await check(service.url, token);
        expect(answer.status).toBe(503);
        expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
      });
      await expect.poll(async () => (await check(service.url, token)).status, { timeout: 30_000 }).toBe(200);
    } finally {
      await sql.end();
    }
  });
});

/** Devices that check again and again, each time at another of the processes that a balancer has. */
function steadyTraffic(options: {
  readonly tokens: readonly string[];
  readonly serving: () => readonly ListeningService[];
}) {
  const statuses = new Map<number, number>();
  const faults: unknown[] = [];
  const inFlight = new Map<ListeningService, number>();
  let running = true;
  const count = (service: ListeningService, by: 1 | -1) => inFlight.set(service, (inFlight.get(service) ?? 0) + by);
  const ask = async (token: string, turn: number): Promise<void> => {
    const serving = options.serving();
    const service = serving[turn % serving.length] as ListeningService;
    count(service, 1);
    try {
      const { status } = await check(service.url, token);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    } catch (error) {
      faults.push(error);
    } finally {
      count(service, -1);
    }
  };
  const devices = options.tokens.map(async (token) => {
    for (let turn = 0; running; turn += 1) {
      await ask(token, turn);
      await sleep(5);
    }
  });
  return {
    /** Requests at that process without an answer yet. */
    inFlight: (service: ListeningService) => inFlight.get(service),
    async stop() {
      running = false;
      await Promise.all(devices);
      return { statuses, faults };
    },
  };
}
