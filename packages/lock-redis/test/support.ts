import { randomBytes } from "node:crypto";
import { Redis, type RedisOptions } from "ioredis";

/** All of ioredis' options but the one that changes the type of the client. */
type ClientOptions = Omit<RedisOptions, "replyMapping">;

/** As the README recommends it: fails at once instead of queueing, and never sends a script twice by itself. */
const recommended: ClientOptions = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  lazyConnect: true,
  retryStrategy: () => 20,
};

/** A connected client. Its connection errors are dropped: tests look at what the store makes of them. */
export async function connect(url: string, options: ClientOptions = {}): Promise<Redis> {
  const client = new Redis(url, { ...recommended, ...options });
  client.on("error", () => {});
  await client.connect();
  return client;
}

/** What an owner token of the lock packages and of symfony/lock looks like. */
export function newOwner(): string {
  return randomBytes(32).toString("base64");
}

let keys = 0;

/** A key that no other test of the file uses. */
export function newKey(): string {
  keys += 1;
  return `test:${keys}`;
}

/** What lies under a key: the members with their scores as text, in order, and the end of the key as PEXPIRETIME says. */
export async function stored(
  redis: Redis,
  key: string,
): Promise<{ members: Record<string, string>; expiresAt: number }> {
  const flat = await redis.zrange(key, 0, "-1", "WITHSCORES");
  const members: Record<string, string> = {};
  for (let index = 0; index < flat.length; index += 2) members[flat[index] as string] = flat[index + 1] as string;
  return { members, expiresAt: await redis.pexpiretime(key) };
}

/** The server's clock in milliseconds, as the scripts read it. */
export async function serverNow(redis: Redis): Promise<number> {
  const [seconds, micros] = (await redis.time()) as unknown as [number, number];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Repeats until the condition holds; the test's own timeout ends it otherwise. */
export async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await condition())) await pause(5);
}

/** What a promise was rejected with. */
export async function failure(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("the promise was fulfilled, though it should have been rejected");
}
