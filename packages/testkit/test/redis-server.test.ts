import { existsSync } from "node:fs";
import { hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import { afterEach, describe, expect, test } from "vitest";
import { RedisSocket } from "./redis-socket.ts";

describe.skipIf(!hasRedis)("startRedis", () => {
  const started: RedisServer[] = [];
  async function start(...args: string[]): Promise<RedisServer> {
    const redis = await startRedis({ args });
    started.push(redis);
    return redis;
  }
  afterEach(async () => {
    await Promise.all(started.splice(0).map((redis) => redis.stop()));
  });

  test("the server answers at its url, empty, by its own process", async () => {
    const redis = await start();
    expect(redis.url).toBe(`redis://127.0.0.1:${redis.port}`);
    expect(await redis.cli("DBSIZE")).toBe("0");
    expect(await redis.cli("INFO", "server")).toContain(`process_id:${redis.pid}\r`);
  });

  test("servers started at once have ports and data of their own", async () => {
    const servers = await Promise.all([start(), start(), start(), start()]);
    expect(new Set(servers.map((redis) => redis.port)).size).toBe(4);
    await servers[0]?.cli("SET", "key", "value");
    expect(await servers[1]?.cli("DBSIZE")).toBe("0");
  });

  test("arguments win over the defaults", async () => {
    const redis = await start("--maxmemory", "3mb", "--appendonly", "yes");
    expect(await redis.cli("CONFIG", "GET", "maxmemory")).toBe("maxmemory\n3145728");
    expect(await redis.cli("CONFIG", "GET", "appendonly")).toBe("appendonly\nyes");
  });

  test("a server that asks for a password counts as started", async () => {
    const redis = await start("--requirepass", "secret");
    expect(await redis.cli("-a", "secret", "--no-auth-warning", "PING")).toBe("PONG");
  });

  test("an error reply is returned as text", async () => {
    const redis = await start();
    expect(await redis.cli("NONSENSE")).toContain("ERR unknown command");
  });

  test("a server that cannot start is an error with the server's own words", async () => {
    await expect(startRedis({ args: ["--nonsense", "1"] })).rejects.toThrow(/ended while starting[\s\S]*nonsense/);
  });

  test("a taken port that was asked for is an error", async () => {
    const redis = await start();
    await expect(startRedis({ port: redis.port })).rejects.toThrow(/already in use/i);
  });

  test("a paused server accepts connections and answers nothing until it is resumed", async () => {
    const redis = await start();
    redis.pause();
    using socket = await RedisSocket.open(redis);
    socket.send("SET key late");
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(socket.received).toBe("");
    redis.resume();
    await socket.line();
    expect(socket.received).toBe("+OK\r\n");
  });

  test("a killed server is gone, its connections closed, until it is restarted on its port without data", async () => {
    const redis = await start();
    await redis.cli("SET", "key", "value");
    using socket = await RedisSocket.open(redis);
    const { pid } = redis;
    await redis.kill();
    await socket.closed();
    await expect(redis.cli("PING")).rejects.toThrow("Connection refused");
    await redis.restart();
    expect(redis.pid).not.toBe(pid);
    expect(await redis.cli("DBSIZE")).toBe("0");
  });

  test("pausing a killed server is an error that says what to do", async () => {
    const redis = await start();
    await redis.kill();
    expect(() => redis.pause()).toThrow("restart it first");
  });

  test("a restart keeps the data where persistence is on, and ends the running process first", async () => {
    const redis = await start("--appendonly", "yes", "--appendfsync", "always");
    await redis.cli("SET", "key", "value");
    const { pid } = redis;
    await redis.restart();
    expect(redis.pid).not.toBe(pid);
    expect(await redis.cli("GET", "key")).toBe("value");
  });

  test("stop ends the process, even a paused one, and removes its folder", async () => {
    const redis = await start();
    const [, directory = ""] = (await redis.cli("CONFIG", "GET", "dir")).split("\n");
    expect(existsSync(directory)).toBe(true);
    redis.pause();
    await redis.stop();
    await redis.stop();
    await expect(redis.cli("PING")).rejects.toThrow("Connection refused");
    expect(existsSync(directory)).toBe(false);
  });
});
