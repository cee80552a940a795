import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createTestDatabase, freePort } from "@ota/testkit";

/** The service in a process of its own, on PostgreSQL, from the sources. */
export interface PostgresService {
  readonly url: string;
  readonly pid: number;
  readonly operatorKey: string;
  readonly artifactDirectory: string;
  stop(): Promise<void>;
}

/** Starts `main.ts` and waits until it is ready. */
export async function startPostgresService(
  environment: Readonly<Record<string, string>> = {},
): Promise<PostgresService> {
  const folder = await mkdtemp(join(tmpdir(), "ota-service-"));
  const port = await freePort();
  const operatorKey = randomBytes(32).toString("base64url");
  const artifactDirectory = join(folder, "artifacts");
  const child = spawn(process.execPath, ["--conditions=@ota/source", MAIN], {
    stdio: ["ignore", "inherit", "inherit"],
    env: {
      PATH: process.env["PATH"],
      LOG_LEVEL: "warn",
      PORT: String(port),
      DATABASE_URL: await createTestDatabase(),
      OTA_DATA_DIR: folder,
      OTA_ARTIFACT_DIR: artifactDirectory,
      OTA_OPERATOR_KEY: operatorKey,
      OTA_URL_SIGNING_KEY: randomBytes(32).toString("hex"),
      ...environment,
    },
  });
  const url = `http://127.0.0.1:${port}`;
  const stop = async () => {
    await end(child);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await untilReady(url, child);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, pid: child.pid ?? 0, operatorKey, artifactDirectory, stop };
}

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

async function untilReady(url: string, child: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 600; tries += 1) {
    if (child.exitCode !== null) throw new Error(`The service ended with ${child.exitCode} before it was ready.`);
    const answer = await fetch(`${url}/readyz`).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.ok) return;
    await sleep(100);
  }
  throw new Error("The service was not ready in time.");
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
}
