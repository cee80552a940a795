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
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(child.stdout, "data");
  const { pid } = child;
  if (pid === undefined) throw new Error("the process that owns the servers has no id");
  return {
    started: JSON.parse(String(line)),
    async end(signal) {
      const exit = once(child, "exit");
      process.kill(-pid, signal); // the whole process group, as Ctrl-C in a terminal does
      await exit;
    },
  };
}

describe.skipIf(!hasRedis || !hasPostgresBinaries)("servers of a process that is gone", () => {
  test.each([
    ["ended by Ctrl-C", "SIGINT", []],
    ["killed, even when they are paused", "SIGKILL", ["pause"]],
  ] as const)("are killed and their folders removed when it was %s", async (_, signal, args) => {
    const owner = await runner(...args);
    const { pids, directory } = owner.started;
    expect(pids).toHaveLength(2);
    expect(existsSync(directory)).toBe(true);
    const children = pids.flatMap(childrenOf);
    expect(children.length).toBeGreaterThan(3); // PostgreSQL is more than its postmaster
    await owner.end(signal);
    await untilEnded([...pids, ...children]);
    await vi.waitFor(() => expect(existsSync(directory)).toBe(false), { timeout: 10_000 });
  });
});
