import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createTestDatabase, hasPostgres, hasRedis, type RedisServer, startRedis, startTcpProxy } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const packageRoot = fileURLToPath(new URL("..", import.meta.url));

/** Runs a TypeScript file of this package in a process of its own; rejects when that fails or takes a minute. */
async function run(file: string, options: { args?: readonly string[]; env?: Record<string, string> } = {}) {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--conditions=@ota/source", file, ...(options.args ?? [])],
    { cwd: packageRoot, timeout: 60_000, env: { ...options.env, PATH: process.env["PATH"] } },
  );
  return stdout;
}

/** What an example prints, where that is not that something is true. */
const PRINTED: Readonly<Record<string, RegExp>> = {
  "exclusive.ts": /held for another \d+ ms\n.*contended\n.*granted\n/,
  "from-redlock.ts": /still held by someone else after \d+ ms/,
  "from-redis-semaphore.ts": /handed over: held\n/,
};

describe.skipIf(!hasRedis)("a process that uses RedisStore", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  // The lease that is being undone would live for a minute.
  it("ends by itself, without an unhandled rejection, while a failed acquire is still being undone", async () => {
    const proxy = await startTcpProxy({ target: server });
    proxy.dropReplies();
    const output = await run("test/fixtures/leave-while-undoing.ts", { args: [`redis://${proxy.host}:${proxy.port}`] });
    expect(output).toBe("LockStoreError\n");
    await proxy.close();
  });

  const examples = readdirSync(`${packageRoot}/examples`);
  const usesDatabase = (example: string) =>
    readFileSync(`${packageRoot}/examples/${example}`, "utf8").includes("DATABASE_URL");
  it.each(examples.filter((example) => hasPostgres || !usesDatabase(example)))(
    "example %s runs",
    async (example) => {
      const database = usesDatabase(example) ? { DATABASE_URL: await createTestDatabase() } : {};
      const output = await run(`examples/${example}`, { env: { REDIS_URL: server.url, ...database } });
      expect(output).toMatch(PRINTED[example] ?? /: true\n/);
    },
    70_000,
  );
});

describe("README.md", () => {
  it("shows only code that is in the examples, which run", () => {
    const readme = readFileSync(`${packageRoot}/README.md`, "utf8");
    const blocks = [...readme.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code as string);
    const examples = readdirSync(`${packageRoot}/examples`).map((file) =>
      readFileSync(`${packageRoot}/examples/${file}`, "utf8"),
    );
    expect(blocks.length).toBeGreaterThan(0);
    for (const block of blocks) expect(examples.some((example) => example.includes(block))).toBe(true);
  });
});
