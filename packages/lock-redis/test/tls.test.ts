import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { LockFactory } from "@ota/lock-core";
import { freePort, hasRedis, type RedisServer, startRedis } from "@ota/testkit";
import * as six from "ioredis";
import * as five from "ioredis-5";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisStore } from "../src/index.ts";
import { failure, newKey, newOwner, pause } from "./support.ts";

describe.skipIf(!hasRedis)("RedisStore over TLS", () => {
  let directory: string;
  let server: RedisServer;
  let port: number;
  let ca: Buffer;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "ota-tls-"));
    const [key, certificate] = [join(directory, "key.pem"), join(directory, "certificate.pem")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
    const newKeyFile = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key];
    await promisify(execFile)("openssl", [
      "req",
      "-x509",
      ...newKeyFile,
      "-out",
      certificate,
      "-days",
      "2",
      ...subject,
    ]);
    ca = await readFile(certificate);
    port = await freePort();
    const files = ["--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate];
    server = await startRedis({ args: ["--tls-port", String(port), "--tls-auth-clients", "no", ...files] });
  });
  afterAll(async () => {
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  });

  it.each([
    ["ioredis 5", five],
    ["ioredis 6", six],
  ] as const)("%s: locks work, and a waiter is woken over TLS as well", async (_name, library) => {
    const client = new (library.Redis as typeof six.Redis)({ host: server.host, port, tls: { ca } });
    const [one, two] = [new RedisStore(client), new RedisStore(client)];
    const key = newKey();
    const lease = await new LockFactory(one).createLock(key).acquire();
    const waiting = new LockFactory(two).createLock(key).acquire({ retryDelayMs: 60_000 });
    while (!(await server.cli("PUBSUB", "CHANNELS")).includes("lock-turns")) await pause(20);
    await pause(100); // It asks once more when it hears.
    await lease.release();
    expect(await (await waiting).release()).toBe("released");
    await two.close();
    client.disconnect();
  });

  it("a server with a certificate that the client does not trust gets no token", async () => {
    const client = new six.Redis({ host: server.host, port, tls: {}, retryStrategy: () => null, lazyConnect: true });
    client.on("error", () => {});
    await failure(client.connect());
    const asked = new RedisStore(client).acquire({ key: newKey(), owner: newOwner(), ttlMs: 1_000 });
    expect(String(await failure(asked))).toMatch(/^LockStoreError/);
    client.disconnect();
  });
});
