import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase, hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listen, probeAddress } from "../../src/listen.ts";
import { call } from "./operator-client.ts";
import { runMain, startServiceProcess } from "./service-process.ts";

describe("the command line", { timeout: 120_000 }, () => {
  test("--help names the commands and the variables, --version the version, and anything else is not understood", async () => {
    const [help, version, other] = await Promise.all([
      runMain({ args: ["--help"] }),
      runMain({ args: ["--version"] }),
      runMain({ args: ["operator-key", "delete"] }),
    ]);
    expect(help).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining("operator-key create") });
    expect(help.stdout).toContain("DATABASE_URL");
    expect(version).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
    expect(other).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("Usage:") });
  });

  test("a wrong configuration ends it with every reason and no stack", async () => {
    const { code, stdout, stderr } = await runMain({ env: { PORT: "http", LOG_LEVEL: "loud" } });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^The configuration is not valid:\n {2}PORT must be .*\n {2}LOG_LEVEL must be .*\n$/);
  });
});

describe("artifacts collect", { timeout: 180_000 }, () => {
  test("says what it has done as JSON, on the embedded database while no service has it", async () => {
    const collect = (...more: string[]) => runMain({ args: ["artifacts", "collect", ...more] });
    const nothing = { files: 0, deleted: 0, freedBytes: 0, abandonedUploads: 0 };
    const { code, stdout } = await collect("--dry-run");
    expect({ code, printed: JSON.parse(stdout) }).toEqual({ code: 0, printed: nothing });
    for (const args of [["--dry-run"], ["artifacts"], ["artifacts", "collect", "--name", "x"]]) {
      expect(await runMain({ args })).toMatchObject({ code: 2, stdout: "" });
    }
  });
});

describe.skipIf(!hasPostgres)("the command line on PostgreSQL", { timeout: 120_000 }, () => {
  test("operator-key create prints a key that works, and nothing else", async () => {
    const env = { DATABASE_URL: await createTestDatabase() };
    const { code, stdout, stderr } = await runMain({ env, args: ["operator-key", "create", "--name", "ci"] });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const service = await startServiceProcess({ env });
    try {
      const key = stdout.trim();
      expect((await call(service.url, "/v1/products", { method: "GET", token: key })).status).toBe(200);
      expect(service.log() + service.errors()).not.toContain(key);
    } finally {
      await service.dispose();
    }
  });

  test("OTA_MIGRATE: off refuses an old schema and says what to do, only brings it up to date and ends", async () => {
    const DATABASE_URL = await createTestDatabase();
    const off = { DATABASE_URL, OTA_MIGRATE: "off" };
    const refused = await runMain({ env: off });
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/^The database's schema is older .*\n$/) });
    expect(await runMain({ env: { DATABASE_URL, OTA_MIGRATE: "only" } })).toMatchObject({ code: 0, stderr: "" });
    const service = await startServiceProcess({ env: off });
    await service.dispose();
  });
});

describe("a port in use", { timeout: 120_000 }, () => {
  let occupant: Server;
  let port: number;
  beforeAll(async () => {
    occupant = createServer().listen(0, "127.0.0.1");
    await once(occupant, "listening");
    ({ port } = occupant.address() as AddressInfo);
  });
  afterAll(() => void occupant.close());

  test("is told in one line, before a database is made", async () => {
    const folder = await mkdtemp(join(tmpdir(), "ota-port-"));
    try {
      const { code, stderr } = await runMain({ env: { OTA_DATA_DIR: folder, PORT: String(port) } });
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: `Port ${port} of 127.0.0.1 is in use already (PORT_IN_USE). Choose another one with PORT, or end what listens there.\n`,
      });
      expect(await readdir(folder)).not.toContain("database");
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  test.skipIf(!hasPostgres)(
    "is told before a database is waited for, and is none of a migration's business",
    async () => {
      const env = { DATABASE_URL: await createTestDatabase(), PORT: String(port) };
      const away = "postgres://ota@127.0.0.1:9/ota";
      const { code, stderr } = await runMain({ env: { ...env, DATABASE_URL: away } });
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("(PORT_IN_USE)") });
      expect(await runMain({ env: { ...env, OTA_MIGRATE: "only" } })).toMatchObject({ code: 0, stderr: "" });
    },
  );

  test("is noticed by the server itself, where it was taken after that", async () => {
    await expect(listen(createServer(), { host: "127.0.0.1", port })).rejects.toMatchObject({ code: "PORT_IN_USE" });
    await expect(probeAddress({ host: "127.0.0.1", port: 0 })).resolves.toBeUndefined();
  });
});
