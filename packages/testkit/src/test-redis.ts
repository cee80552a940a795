import { redisServerPath } from "./binaries.ts";
import { startRedis } from "./redis-server.ts";

/** A Redis for tests that neither kill nor pause it, and that only touch keys of their own making. */
export interface TestRedis {
  readonly host: string;
  readonly port: number;
  readonly url: string;
  /** The same database by another address, such as that of a proxy in front of it. */
  urlBy(address: { readonly host: string; readonly port: number }): string;
  /** Ends the server if it was started for this test; a given one is left as it is. */
  stop(): Promise<void>;
}

/** True when `createTestRedis` can work here: redis-server is installed, or `TEST_REDIS_URL` names a server. */
export const hasTestRedis: boolean = redisServerPath !== undefined || Boolean(process.env["TEST_REDIS_URL"]);

/** The database that is used on a given server whose URL names none: the last one that Redis has by default. */
const DEFAULT_DATABASE = "/15";

/**
 * The Redis of `TEST_REDIS_URL`, in the database that the URL names (15 where it names none), else a private server. A
 * given server is never flushed, killed or paused: tests use fresh random keys, which expire.
 */
export async function createTestRedis(): Promise<TestRedis> {
  const given = process.env["TEST_REDIS_URL"];
  const started = given ? undefined : await startRedis();
  const url = new URL(given || started?.url || "");
  if (given && url.pathname.length <= 1) url.pathname = DEFAULT_DATABASE;
  return {
    host: url.hostname,
    port: Number(url.port || 6379),
    url: url.href,
    urlBy({ host, port }) {
      const other = new URL(url);
      other.hostname = host;
      other.port = String(port);
      return other.href;
    },
    stop: async () => started?.stop(),
  };
}
