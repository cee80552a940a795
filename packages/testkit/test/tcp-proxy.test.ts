import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { freePort, hasRedis, type RedisServer, startRedis, startTcpProxy, type TcpProxy } from "@ota/testkit";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { RedisSocket } from "./redis-socket.ts";

const quietMs = 80;
const quiet = () => new Promise((resolve) => setTimeout(resolve, quietMs));

describe.skipIf(!hasRedis)("startTcpProxy", () => {
  let redis: RedisServer;
  let proxy: TcpProxy;
  const sockets: RedisSocket[] = [];
  async function open(): Promise<RedisSocket> {
    const socket = await RedisSocket.open(proxy);
    sockets.push(socket);
    return socket;
  }

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
  beforeEach(async () => {
    await redis.cli("FLUSHALL");
    proxy = await startTcpProxy({ target: redis });
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.close();
    await proxy.close();
  });

  test("without a fault, commands and replies pass", async () => {
    const socket = await open();
    expect(await socket.ask("SET key value")).toBe("+OK");
    expect(await socket.ask("GET key")).toBe("$5\r\nvalue");
  });

  test("a reply of many megabytes passes whole and in order", async () => {
    const socket = await open();
    const value = "0123456789abcdef".repeat(500_000);
    socket.send(`*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$${value.length}\r\n${value}`);
    await socket.line();
    socket.received = "";
    socket.send("GET key");
    await vi.waitFor(() => expect(socket.received.length).toBe(value.length + 12), { timeout: 20_000 });
    expect(socket.received === `$${value.length}\r\n${value}\r\n`).toBe(true);
  });

  test("connections counts the open ones", async () => {
    const [one] = [await open(), await open()];
    await vi.waitFor(() => expect(proxy.connections).toBe(2));
    one.close();
    await vi.waitFor(() => expect(proxy.connections).toBe(1));
  });

  test("a client's end reaches the target, whose reply still reaches the client", async () => {
    const socket = await open();
    socket.send("ECHO last");
    socket.end();
    await socket.closed();
    expect(socket.received).toBe("$4\r\nlast\r\n");
  });

  test("cut closes every connection and serves new ones", async () => {
    const [one, other] = [await open(), await open()];
    await one.ask("PING");
    await other.ask("PING");
    proxy.cut();
    await Promise.all([one.closed(), other.closed()]);
    expect(await (await open()).ask("PING")).toBe("+PONG");
    await vi.waitFor(async () => expect(await redis.cli("INFO", "clients")).toContain("connected_clients:2\r")); // and redis-cli
  });

  test("refuse closes new connections and lets the others go on, until resume", async () => {
    const before = await open();
    await before.ask("PING");
    proxy.refuse();
    await (await open()).closed();
    expect(await before.ask("PING")).toBe("+PONG");
    proxy.resume();
    expect(await (await open()).ask("PING")).toBe("+PONG");
  });

  test("hold('requests') keeps commands from the server until resume, in order", async () => {
    const socket = await open();
    await socket.ask("PING");
    proxy.hold("requests");
    socket.send("RPUSH list 1");
    socket.send("RPUSH list 2");
    await quiet();
    expect(await redis.cli("LLEN", "list")).toBe("0");
    proxy.resume();
    await vi.waitFor(async () => expect(await redis.cli("LRANGE", "list", "0", "-1")).toBe("1\n2"));
  });

  test.each(["close", "reset"] as const)(
    "a request held while its client goes away by %s is executed after resume",
    async (how) => {
      const socket = await open();
      await socket.ask("PING");
      proxy.hold("requests");
      socket.send("SET key late");
      await quiet();
      socket[how]();
      await quiet();
      expect(await redis.cli("EXISTS", "key")).toBe("0");
      proxy.resume();
      await vi.waitFor(async () => expect(await redis.cli("GET", "key")).toBe("late"));
      await vi.waitFor(() => expect(proxy.connections).toBe(0));
    },
  );

  test("hold('replies') lets commands be executed and keeps their replies until resume", async () => {
    const socket = await open();
    await socket.ask("PING");
    proxy.hold("replies");
    socket.received = "";
    socket.send("SET key value");
    await vi.waitFor(async () => expect(await redis.cli("GET", "key")).toBe("value"));
    await quiet();
    expect(socket.received).toBe("");
    proxy.resume();
    await socket.line();
    expect(socket.received).toBe("+OK\r\n");
  });

  test("hold() holds both directions", async () => {
    const subscriber = await open();
    await subscriber.ask("SUBSCRIBE news");
    proxy.hold();
    subscriber.received = "";
    subscriber.send("PING");
    await redis.cli("PUBLISH", "news", "today");
    await quiet();
    expect(subscriber.received).toBe("");
    proxy.resume();
    await vi.waitFor(() => expect(subscriber.received).toMatch(/today[\s\S]*pong/i));
  });

  test("hold() holds new connections too", async () => {
    proxy.hold();
    const socket = await open();
    socket.send("SET key value");
    await quiet();
    expect(await redis.cli("EXISTS", "key")).toBe("0");
    proxy.resume();
    await socket.line();
    expect(socket.received).toBe("+OK\r\n");
  });

  test("dropReplies swallows replies for good, while commands are executed", async () => {
    const socket = await open();
    await socket.ask("PING");
    proxy.dropReplies();
    socket.received = "";
    socket.send("SET key value");
    await vi.waitFor(async () => expect(await redis.cli("GET", "key")).toBe("value"));
    await quiet();
    expect(socket.received).toBe("");
    proxy.resume();
    expect(await socket.ask("ECHO next")).toBe("$4\r\nnext");
  });

  test("cutBeforeReply executes the next request and closes its connection without a reply, once", async () => {
    const [socket, other] = [await open(), await open()];
    await socket.ask("PING");
    proxy.cutBeforeReply();
    socket.received = "";
    socket.send("SET key value");
    await socket.closed();
    expect(socket.received).toBe("");
    expect(await redis.cli("GET", "key")).toBe("value");
    expect(await other.ask("PING")).toBe("+PONG");
  });

  test("cutBeforeReply(2) answers one request and loses the reply to the second", async () => {
    const socket = await open();
    proxy.cutBeforeReply(2);
    expect(await socket.ask("INCR counter")).toBe(":1");
    socket.received = "";
    socket.send("INCR counter");
    await socket.closed();
    expect(socket.received).toBe("");
    expect(await redis.cli("GET", "counter")).toBe("2");
  });

  test("cutBeforeReply lets pass what the server sends unasked", async () => {
    const [subscriber, publisher] = [await open(), await open()];
    await subscriber.ask("SUBSCRIBE news");
    proxy.cutBeforeReply();
    subscriber.received = "";
    await redis.cli("PUBLISH", "news", "today");
    await vi.waitFor(() => expect(subscriber.received).toContain("today"));
    publisher.send("PING");
    await publisher.closed();
    expect(subscriber.isClosed).toBe(false);
  });

  test("delay(ms) makes a round trip take twice as long at least, and keeps the order", async () => {
    const socket = await open();
    await socket.ask("PING");
    proxy.delay(60);
    const start = performance.now();
    socket.received = "";
    for (const n of [1, 2, 3]) socket.send(`ECHO ${n}`);
    await vi.waitFor(() => expect(socket.received).toBe("$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n"));
    expect(performance.now() - start).toBeGreaterThan(119);
  });

  test("resume forwards delayed bytes at once", async () => {
    const socket = await open();
    await socket.ask("PING");
    proxy.delay(60_000);
    socket.received = "";
    socket.send("PING");
    await quiet();
    proxy.resume();
    await socket.line();
    expect(socket.received).toBe("+PONG\r\n");
  });

  test("a target that is down closes the connection", async () => {
    const nowhere = await startTcpProxy({ target: { host: "127.0.0.1", port: await freePort() } });
    const socket = await RedisSocket.open(nowhere);
    await socket.closed();
    await nowhere.close();
  });

  test("a target that goes away closes its connections", async () => {
    const server = createServer();
    server.listen({ host: "127.0.0.1", port: 0 });
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    const inFront = await startTcpProxy({ target: { host: "127.0.0.1", port } });
    const accepted = once(server, "connection");
    const socket = await RedisSocket.open(inFront);
    const [target] = (await accepted) as [Socket];
    target.resetAndDestroy();
    await socket.closed();
    await inFront.close();
    server.close();
  });

  test("close closes connections and stops listening", async () => {
    const socket = await open();
    await proxy.close();
    await socket.closed();
    await expect(RedisSocket.open(proxy)).rejects.toThrow("ECONNREFUSED");
    await proxy.close();
  });
});

describe("freePort", () => {
  test("a port is free and outside the range of outgoing connections", async () => {
    const port = await freePort();
    expect(port).toBeLessThan(32_768);
    const server = createServer();
    server.listen({ host: "127.0.0.1", port });
    await once(server, "listening");
    server.close();
  });
});
