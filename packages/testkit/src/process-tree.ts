import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** The ids of the processes that `pid` has started and that still run. */
export function childrenOf(pid: number): number[] {
  return processes()
    .filter((each) => each.parent === pid && !each.hasEnded)
    .map((each) => each.pid);
}

/**
 * Waits until none of `pids` runs any more.
 * @throws Error when one still runs after 10 s.
 */
export async function untilEnded(pids: readonly number[]): Promise<void> {
  const giveUpAt = performance.now() + 10_000;
  for (;;) {
    const running = new Set(processes().flatMap((each) => (each.hasEnded ? [] : [each.pid])));
    const left = pids.filter((pid) => running.has(pid));
    if (left.length === 0) return;
    if (performance.now() > giveUpAt) throw new Error(`processes still run after SIGKILL: ${left.join(", ")}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Signals a process that may have ended by itself meanwhile. */
export function signalIfRunning(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  /** Also true of a zombie: a process that has ended, which its parent has not asked about. */
  readonly hasEnded: boolean;
}

function processes(): ProcessRow[] {
  return process.platform === "linux" ? fromProc() : fromPs();
}

function fromProc(): ProcessRow[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    let stat: string;
    try {
      stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    } catch {
      return []; // ended since the folder was read
    }
    // "PID (name) STATE PARENT …"; the name may hold spaces and brackets
    const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return [{ pid: Number(pid), parent: Number(parent), hasEnded: state === "Z" || state === "X" }];
  });
}

function fromPs(): ProcessRow[] {
  const lines = execFileSync("ps", ["-A", "-o", "pid=,ppid=,state="], { encoding: "utf8" }).trim().split("\n");
  return lines.map((line) => {
    const [pid, parent, state = ""] = line.trim().split(/\s+/);
    return { pid: Number(pid), parent: Number(parent), hasEnded: state.startsWith("Z") };
  });
}
