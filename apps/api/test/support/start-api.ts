import { mkdtemp, rm } from "node:fs/promises";
import type { Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOperatorKey, createUpdateChecks, type Database, installationId } from "@ota/domain";
import { LockFactory, MemoryStore } from "@ota/lock-core";
import { createTestDatabase } from "@ota/testkit";
import { pino } from "pino";
import { createApp } from "../../src/app.ts";
import { createArtifactUrls } from "../../src/artifacts/artifact-urls.ts";
import { DiskArtifactStore } from "../../src/artifacts/disk-artifact-store.ts";
import { openDatabase } from "../../src/database.ts";
import { createHealth } from "../../src/health.ts";
import { createHttpServer } from "../../src/http/server.ts";
import { expectDocumented } from "./document-check.ts";

/** The real application on a real database, listening. */
export interface TestApi {
  readonly url: string;
  readonly db: Database;
  readonly server: Server;
  readonly artifactDirectory: string;
  /** A key that works. */
  readonly operatorKey: string;
  /** Calls as the operator; every answer is checked against the OpenAPI document. */
  readonly operator: Caller;
  /** Calls as somebody else: with a token, or with none. */
  as(token: string | undefined): Caller;
  close(): Promise<void>;
}

/** An answer, read whole. */
export interface TestAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  // Tests read fields deep inside; the document check has seen to their types.
  // biome-ignore lint/suspicious/noExplicitAny: a body is whatever JSON the service sends
  readonly body: any;
}

/** What a call sends beside its address. A body that is no JSON is given as bytes. */
export interface CallInit {
  readonly json?: unknown;
  readonly bytes?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Caller = (method: string, path: string, init?: CallInit) => Promise<TestAnswer>;

/** What differs between tests. */
export interface TestApiOptions {
  readonly database?: "postgres" | "embedded";
  readonly maxArtifactBytes?: number;
  /** @default a folder of its own */
  readonly artifactDirectory?: string;
}

/** Starts everything that `main.ts` starts, in this process, with locks in memory. */
export async function startApi(options: TestApiOptions = {}): Promise<TestApi> {
  const folder = await mkdtemp(join(tmpdir(), "ota-api-"));
  const artifactDirectory = options.artifactDirectory ?? join(folder, "artifacts");
  const logger = pino({ level: "silent" });
  const database = await openDatabase({
    migrate: "auto",
    database:
      options.database === "embedded"
        ? { kind: "embedded", directory: join(folder, "database") }
        : {
            kind: "postgres",
            url: await createTestDatabase(),
            poolSize: 4,
            connectTimeoutMs: 5000,
            statementTimeoutMs: 10_000,
          },
  });
  const { db } = database;
  const checks = createUpdateChecks({
    db,
    locks: new LockFactory(new MemoryStore(), { logger, ttlMs: 10_000 }),
    logger,
  });
  const artifacts = await DiskArtifactStore.open({
    directory: artifactDirectory,
    installationId: await installationId(db),
  });
  const { key: operatorKey } = await createOperatorKey(db, { actor: { kind: "system" }, name: "test" });

  let listener: ReturnType<typeof createApp> | undefined;
  const server = createHttpServer((request, response) => listener?.(request, response), {
    keepAliveMs: 5000,
    uploadTimeoutMs: 60_000,
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const url = `http://127.0.0.1:${port}`;
  listener = createApp({
    logger,
    version: "0.0.0-test",
    bodyLimitBytes: 65_536,
    bodyTimeoutMs: 10_000,
    services: {
      ...{ db, checks, artifacts, publicUrl: url },
      artifactUrls: createArtifactUrls({ publicUrl: url, key: Buffer.alloc(32, 7), validSeconds: 3600 }),
      health: createHealth({
        probeDatabase: () => database.probe(),
        probeLockStore: async () => {},
        lockOutage: "proceed",
      }),
      maxArtifactBytes: options.maxArtifactBytes ?? 8 * 1024 * 1024,
    },
  });

  const as = (token: string | undefined): Caller => callerOf(url, token);
  return {
    ...{ url, db, server, artifactDirectory, operatorKey, as },
    operator: as(operatorKey),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await checks.close();
      await database.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function callerOf(url: string, token: string | undefined): Caller {
  return async (method, path, init = {}) => {
    const json = init.json === undefined ? undefined : JSON.stringify(init.json);
    const body = init.bytes === undefined ? json : new Uint8Array(init.bytes);
    const response = await fetch(path.startsWith("http") ? path : `${url}${path}`, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(init.json === undefined ? {} : { "content-type": "application/json" }),
        ...init.headers,
      },
      ...(body === undefined ? {} : { body }),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    const contentType = response.headers.get("content-type") ?? undefined;
    const parsed: unknown =
      contentType?.includes("json") && bytes.length > 0 ? JSON.parse(bytes.toString("utf8")) : undefined;
    const { pathname } = new URL(response.url);
    expectDocumented({ method, path: pathname, status: response.status, contentType, body: parsed });
    return { status: response.status, headers: response.headers, bytes, body: parsed };
  };
}
