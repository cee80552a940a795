import { readdirSync, readFileSync } from "node:fs";

/** Linux counts the CPU time of processes in ticks of this many microseconds, whatever the kernel's own clock. */
const TICK_US = 10_000;

/** CPU time that a process has taken so far, in microseconds. Linux alone. */
export function cpuUsOf(pid: number): number {
  const { user, system } = stat(pid);
  return (user + system) * TICK_US;
}

/**
 * The same of a server that works in processes of its own, such as PostgreSQL: its parent, the children that run, and
 * those that have ended. One that ends between the readings of its folder and of itself is counted by its parent.
 */
export function cpuUsOfTree(pid: number): number {
  const parent = stat(pid);
  let ticks = parent.user + parent.system + parent.endedUser + parent.endedSystem;
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const child = stat(Number(name));
      if (child.parent === pid) ticks += child.user + child.system;
    } catch (error) {
      if (!isEnded(error)) throw error;
    }
  }
  return ticks * TICK_US;
}

/** Memory that a process has in RAM, in MiB. */
export function rssMibOf(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  if (kib === undefined) throw new Error(`process ${pid} has no memory`);
  return Number(kib) / 1024;
}

/** The fields of proc(5) that are wanted here. */
function stat(pid: number) {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  // "PID (name) STATE PARENT …"; the name may hold spaces and brackets.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const field = (number: number): number => Number(fields[number - 3]);
  return {
    parent: field(4),
    user: field(14),
    system: field(15),
    endedUser: field(16),
    endedSystem: field(17),
  };
}

function isEnded(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ESRCH";
}
