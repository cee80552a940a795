import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOperatorKey, type Database } from "@ota/domain";
import { createTestDatabase } from "@ota/testkit";
import { pino } from "pino";
import { readConfig } from "../../src/config.ts";
import { openDatabase } from "../../src/database.ts";
import { startService } from "../../src/service.ts";
import { expectDocumented } from "./document-check.ts";

/** What the services of the tests sign their URLs with. */
export const URL_SIGNING_KEY: Buffer = Buffer.alloc(32, 7);

/** The real application on a real database, listening. */
export interface TestApi {
  readonly url: string;
  readonly db: Database;
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
  /** @default none */
  readonly trustProxy?: string;
  /** More variables of the environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts the service as `main.ts` does, in this process, with locks in memory. */
export async function startApi(options: TestApiOptions = {}): Promise<TestApi> {
  const folder = await mkdtemp(join(tmpdir(), "ota-api-"));
  const artifactDirectory = options.artifactDirectory ?? join(folder, "artifacts");
  const config = readConfig({
    PORT: "0",
    OTA_DATA_DIR: folder,
    OTA_ARTIFACT_DIR: artifactDirectory,
    OTA_MAX_ARTIFACT_BYTES: String(options.maxArtifactBytes ?? 8 * 1024 * 1024),
    OTA_URL_SIGNING_KEY: URL_SIGNING_KEY.toString("hex"),
    OTA_SHUTDOWN_TIMEOUT_MS: "0",
    TRUST_PROXY: options.trustProxy ?? "",
    ...(options.database === "embedded" ? {} : { DATABASE_URL: await createTestDatabase() }),
    ...options.env,
  });
  const database = await openDatabase(config);
  const { db } = database;
  const logger = pino({ level: "silent" });
  const service = await startService({
    config,
    logger,
    database,
    keys: { urlSigningKey: URL_SIGNING_KEY, operatorKey: undefined },
  });
  const { key: operatorKey } = await createOperatorKey(db, { actor: { kind: "system" }, name: "test" });

  const as = (token: string | undefined): Caller => callerOf(service.url, token);
  return {
    ...{ url: service.url, db, artifactDirectory, operatorKey, as },
    operator: as(operatorKey),
    async close() {
      await service.stop();
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
      /[/+]json\b/.test(contentType ?? "") && bytes.length > 0 ? JSON.parse(bytes.toString("utf8")) : undefined;
    const { pathname } = new URL(response.url);
    expectDocumented({ method, path: pathname, status: response.status, contentType, body: parsed });
    return { status: response.status, headers: response.headers, bytes, body: parsed };
  };
}
