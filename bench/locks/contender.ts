/** Something that locks, as the benchmark sees it. */
export interface Session {
  /** Takes the key, which nobody else wants, and gives it back. */
  pair(key: string): Promise<void>;
  /** Waits for the key as long as it takes, holds it while `work` runs, and gives it back. A bare socket cannot wait. */
  waitFor?(key: string, work: () => Promise<void>): Promise<void>;
  /** Takes the key and keeps it: what is returned is all that a holder has to keep. */
  hold?(key: string): Promise<unknown>;
  close(): Promise<void>;
}

/** Opens a session on the Redis server at `url`, over one connection for commands. */
export type OpenSession = (url: string) => Promise<Session>;

/** A lock's lifetime in the benchmarks: longer than any of them. */
export const TTL_MS = 30_000;

/** How every contender connects. */
export function address(url: string): { readonly host: string; readonly port: number } {
  const { hostname: host, port } = new URL(url);
  return { host, port: Number(port) };
}
