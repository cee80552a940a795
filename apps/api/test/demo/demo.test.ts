import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createTestDatabase, hasPostgres } from "@ota/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const main = fileURLToPath(new URL("../../src/demo/main.ts", import.meta.url));

describe("the demonstration", { skip: !hasPostgres, timeout: 120_000 }, () => {
  let temporary: string;
  beforeEach(async () => {
    temporary = await mkdtemp(join(tmpdir(), "ota-demo-test-"));
  });
  afterEach(() => rm(temporary, { recursive: true, force: true }));

  test("counts what the service guarantees, ends with 0 and cleans up", async () => {
    const { exitCode, output } = await (await start(["--devices", "4", "--checks", "10"])).ended;
    expect(output).toContain("primehub.zip");
    expect(output).toContain("found the SHA-256 right, installed it and now runs 4.");
    expect(output).toMatch(/checks +40\n/);
    expect(output).toMatch(/answered: update +40 {2}as it must be/);
    expect(output).toMatch(/upgrade records +4 {2}as it must be/);
    expect(output).toMatch(/duplicates +0 {2}as it must be/);
    expect(exitCode).toBe(0);
    expect(await readdir(temporary)).toEqual([]);
  });

  test("interrupted, it ends its service, cleans up and ends with 130", async () => {
    const demo = await start(["--devices", "200", "--checks", "100"]);
    await expect.poll(demo.output, { timeout: 60_000 }).toContain("Published");
    demo.kill("SIGINT");
    const { exitCode, output } = await demo.ended;
    expect([exitCode, output]).toEqual([130, expect.stringContaining("Interrupted.")]);
    expect(await readdir(temporary)).toEqual([]);
    expect(await processesThatMention(temporary)).toEqual([]);
  });

  async function start(args: readonly string[]) {
    const child = spawn(process.execPath, ["--conditions=@ota/source", main, ...args], {
      env: { PATH: process.env["PATH"], TMPDIR: temporary, DATABASE_URL: await createTestDatabase() },
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    const ended = once(child, "close").then(([exitCode]) => ({ exitCode: exitCode as number, output }));
    return { ended, output: () => output, kill: (signal: NodeJS.Signals) => child.kill(signal) };
  }
});

/** The service's environment names its folder. */
async function processesThatMention(folder: string): Promise<string[]> {
  const ids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const mentions = await Promise.all(
    ids.map(async (id) => (await readFile(`/proc/${id}/environ`, "utf8").catch(() => "")).includes(folder)),
  );
  return ids.filter((_, index) => mentions[index]);
}
