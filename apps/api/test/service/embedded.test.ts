import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ListeningService, runMain, startServiceProcess } from "./service-process.ts";

const run = promisify(execFile);

// The tests are the life of one installation, in this order: a new embedded database takes seconds to make.
describe("the embedded service", () => {
  let root: string;
  let service: ListeningService;
  let env: Readonly<Record<string, string>>;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), "ota embedded-"));
    env = { OTA_DATA_DIR: join(root, "data") };
    service = await startServiceProcess({ env });
  }, 180_000);
  afterAll(async () => {
    await service.dispose();
    await rm(root, { recursive: true, force: true });
  });

  test("says at its first start where it is, what it is not, and where its key is, which only its owner can read", async () => {
    const keyFile = join(root, "data", "operator-key");
    await expect.poll(service.errors, { timeout: 10_000 }).toMatch(/\/v1\/check"\n\n$/);
    expect(service.errors()).toContain(`runs at ${service.url}`);
    expect(service.errors()).toContain("for one process, and not proof against a power cut");
    expect(service.errors()).toContain(keyFile);
    expect((await stat(keyFile)).mode & 0o777).toBe(0o600);
    // Neither the log nor a file that standard error was sent to gets to know it.
    const key = (await readFile(keyFile, "utf8")).trim();
    expect(service.log() + service.errors()).not.toContain(key);
  });

  test("the lines that it prints take a new user from nothing to an installed firmware, as they are", async () => {
    const [, lines = ""] = service.errors().split("Try it, in another terminal:\n");
    const { stdout, stderr } = await run("sh", ["-eu", "-c", lines], { cwd: root });
    expect(stderr).toBe("");
    const answers = stdout.trim().split("\n");
    expect(answers[0]).toContain('"name":"lamp"');
    expect(answers[1]).toContain('"state":"released"');
    expect(answers[2]).toContain('"decision":"update"');
    expect(answers[3]).toBe("downloaded");
    expect(answers[4]).toContain('"effect":"moved"');
    expect(answers[5]).toContain('"reason":"UP_TO_DATE"');
    expect(answers).toHaveLength(6);
  }, 60_000);

  test("a second process on its folder is refused and told why", async () => {
    const { code, stderr, stdout } = await runMain({ env });
    expect({ code, stdout: stdout.includes("listening") }).toEqual({ code: 1, stdout: false });
    expect(stderr).toMatch(/Another process is using the data folder .*\n$/);
  }, 60_000);

  test("killed by SIGKILL, it starts again with its data and its key, and no longer prints the lines", async () => {
    service.kill("SIGKILL");
    expect(await service.exited).toBe("SIGKILL");
    service = await startServiceProcess({ env });
    const key = (await readFile(join(root, "data", "operator-key"), "utf8")).trim();
    const response = await fetch(`${service.url}/v1/products/lamp`, { headers: { authorization: `Bearer ${key}` } });
    expect(response.status).toBe(200);
    await expect.poll(service.errors, { timeout: 10_000 }).toContain(`runs at ${service.url}`);
    expect(service.errors()).not.toContain("Try it");
  }, 120_000);

  test("SIGTERM ends it cleanly", async () => {
    service.kill("SIGTERM");
    expect(await service.exited).toBe(0);
    expect(service.log().trim().split("\n").at(-1)).toContain('"msg":"ended"');
  }, 60_000);
});
