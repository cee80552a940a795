import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const here = fileURLToPath(new URL("..", import.meta.url));
const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");

/** What a consumer writes; nothing of it may need more than the language itself. */
const CONSUMER = `
import { LockFactory, LockTimeoutError, MemoryStore, type Lease, type LockStore } from "@ota/lock-core";
import { ManualClock, storeContract } from "@ota/lock-core/testing";

const store: LockStore = new MemoryStore();
const lock = new LockFactory(store, { ttlMs: 10_000 }).createLock("k");
export async function work(): Promise<number> {
  await using lease: Lease = await lock.acquire({ waitTimeoutMs: 5 });
  lease.assertHeld();
  lease.signal.addEventListener("abort", () => {});
  if (lease.signal.aborted) throw lease.signal.reason;
  return lock.run(async (other) => other.remainingMs());
}
export const cases = storeContract({ stores: () => [store, store], clock: new ManualClock() });
export const isTimeout = (error: unknown): boolean => error instanceof LockTimeoutError;
`;

const WITH_DOM = `
import { LockFactory, MemoryStore } from "@ota/lock-core";

const lock = new LockFactory(new MemoryStore(), { logger: console }).createLock("k");
export const lease = lock.acquire({ signal: AbortSignal.timeout(5), autoExtend: true, maxHoldMs: 60_000 });
export const page = lease.then(({ signal }) => fetch("http://127.0.0.1/", { signal: AbortSignal.any([signal]) }));
export const signalled: Promise<AbortSignal> = lease.then(({ signal }) => signal);
`;

describe("the published types", () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "lock-core-types-"));
    const installed = join(folder, "node_modules/@ota/lock-core");
    await mkdir(installed, { recursive: true });
    const { publishConfig, ...manifest } = JSON.parse(await readFile(join(here, "package.json"), "utf8"));
    await writeFile(join(installed, "package.json"), JSON.stringify({ ...manifest, ...publishConfig }));
    const build = ["-p", here, "--outDir", join(installed, "dist"), "--tsBuildInfoFile", join(folder, "buildinfo")];
    expect(await compile(build)).toBe("");
    await writeFile(join(folder, "package.json"), '{"type":"module"}');
    await writeFile(join(folder, "consumer.ts"), CONSUMER);
    await writeFile(join(folder, "with-dom.ts"), WITH_DOM);
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  const strict = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "es2022", "--module", "nodenext"];

  test("compile without @types/node, the DOM library or skipLibCheck", async () => {
    expect(await compile([...strict, "--lib", "es2022", join(folder, "consumer.ts")])).toBe("");
  });

  test("take the DOM library's AbortSignal and console", async () => {
    expect(await compile([...strict, "--lib", "es2022,dom", join(folder, "with-dom.ts")])).toBe("");
  });

  test("take the AbortSignal and console of @types/node", async () => {
    const types = dirname(createRequire(import.meta.url).resolve("@types/node/package.json"));
    await mkdir(join(folder, "node_modules/@types"), { recursive: true });
    await symlink(types, join(folder, "node_modules/@types/node"));
    const files = ["consumer.ts", "with-dom.ts"].map((name) => join(folder, name));
    expect(await compile([...strict, "--lib", "es2022", "--types", "node", ...files])).toBe("");
  });

  async function compile(args: readonly string[]): Promise<string> {
    try {
      const { stdout } = await promisify(execFile)(process.execPath, [tsc, ...args], { cwd: folder });
      return stdout;
    } catch (error) {
      return String((error as { stdout?: unknown }).stdout || error);
    }
  }
});
