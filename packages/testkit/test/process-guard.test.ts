import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { hasPostgresBinaries, hasRedis } from "@ota/testkit";
import { describe, expect, test, vi } from "vitest";
import { childrenOf, untilEnded } from "../src/process-tree.ts";

interface Started {
  readonly pids: readonly number[];
  readonly directory: string;
}

/** Runs a process that starts servers and then waits; resolves with what it started. */
async function runner(...what: string[]): Promise<{ started: Started; end(signal: NodeJS.Signals): Promise<void> }> {
  const file = fileURLToPath(new URL("fixtures/server-owner.ts", import.meta.url));
  const { VITEST: _, ...env } = process.env;
  const child = spawn(process.execPath, ["--conditions=@ota/source", file, ...what], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(child.stdout, "data");
  return {
    started: JSON.parse(String(line)),
    async end(signal) {
      const exit = once(child, "exit");
      child.kill(signal);
      await exit;
    },
  };
}

describe.skipIf(!hasRedis || !hasPostgresBinaries)("servers of a process that is gone", () => {
  test.each(["SIGKILL", "SIGINT"] as const)("are killed and their folders removed after %s", async (signal) => {
    const owner = await runner();
    expect(owner.started.pids).toHaveLength(2);
    expect(existsSync(owner.started.directory)).toBe(true);
    const children = owner.started.pids.flatMap(childrenOf);
    await owner.end(signal);
    await untilEnded([...owner.started.pids, ...children]);
    await vi.waitFor(() => expect(existsSync(owner.started.directory)).toBe(false), { timeout: 5000 });
  });

  test("are killed when they are paused, with all processes of PostgreSQL", async () => {
    const owner = await runner("pause");
    const children = owner.started.pids.flatMap(childrenOf);
    expect(children.length).toBeGreaterThan(3);
    await owner.end("SIGKILL");
    await untilEnded([...owner.started.pids, ...children]);
  });
});
