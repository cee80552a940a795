import { existsSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A server's wall clock: so many milliseconds ahead of the machine's (behind, when negative), or standing still. */
export type ServerClock = { readonly offsetMs: number } | { readonly stoppedAt: Date };

const library: string | undefined = findLibrary();

/** True when servers can be started with an adjustable clock: Debian's package faketime is installed. */
export const hasFakeTime: boolean = library !== undefined;

/**
 * The environment that makes a process read its wall clock by way of `file`, and what sets that clock.
 * @throws Error that says how to get libfaketime when it is not installed.
 */
export function fakeTime(file: string): { readonly env: Record<string, string>; set(clock: ServerClock): void } {
  if (library === undefined) throw new Error("libfaketime was not found: apt-get install -y faketime");
  const set = (clock: ServerClock): void => {
    writeFileSync(`${file}.new`, `${timestamp(clock)}\n`);
    renameSync(`${file}.new`, file); // The process never reads half of it.
  };
  set({ offsetMs: 0 });
  const env = {
    // With jemalloc, which Redis uses, libfaketime waits for itself: jemalloc asks for the time when it starts. The
    // allocator of the C library does not, and comes before jemalloc here.
    LD_PRELOAD: `${library} libc.so.6`,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
    TZ: "UTC",
  };
  return { env, set };
}

/** As libfaketime reads it: relative in seconds, or a moment in whole seconds at which the clock stands still. */
function timestamp(clock: ServerClock): string {
  if ("stoppedAt" in clock) return clock.stoppedAt.toISOString().replace("T", " ").slice(0, 19);
  return `${clock.offsetMs < 0 ? "-" : "+"}${Math.abs(clock.offsetMs) / 1000}`;
}

/** Debian keeps it in a folder of each architecture. */
function findLibrary(): string | undefined {
  let folders: string[];
  try {
    folders = readdirSync("/usr/lib");
  } catch {
    return undefined; // no Debian: the caller reports that it was not found
  }
  return folders.map((folder) => join("/usr/lib", folder, "faketime/libfaketime.so.1")).find(existsSync);
}
