import { randomBytes } from "node:crypto";
import { createProduct, hashToken, registerDevice, registerFirmware, releaseFirmware } from "@ota/domain";
import postgres, { type Sql } from "postgres";
import { openDatabase } from "../../src/database.ts";

/** A database with a product, a released firmware, and devices that have never asked. */
export interface Fleet extends AsyncDisposable {
  readonly sql: Sql;
  /** Registers devices and returns their tokens. */
  register(count: number): Promise<readonly string[]>;
  /** The upgrade records and live attempts of the device that has the token. */
  recordsOf(token: string): Promise<{ readonly upgrades: number; readonly attempts: number; readonly live: number }>;
}

const actor = { kind: "system" } as const;

/** Prepares an empty database without the service: its own limits are not the subject then. */
export async function createFleet(url: string): Promise<Fleet> {
  const database = await openDatabase({
    migrate: "auto",
    database: { kind: "postgres", url, poolSize: 4, connectTimeoutMs: 10_000, statementTimeoutMs: 30_000 },
  });
  const { db } = database;
  const sql = postgres(url, { max: 2, onnotice: () => {} });
  await createProduct(db, { actor, name: "lamp" });
  const firmware = await registerFirmware(db, {
    ...{ actor, product: "lamp", version: "2.0.0" },
    // Not in the folder of a service: those of a test have none in common, and an empty one would be refused.
    sourceUrl: "https://files.example/lamp.bin",
    artifact: {
      ...{ sizeBytes: 8, sha256: "ab".repeat(32), sha1: "ab".repeat(20), md5: "ab".repeat(16) },
      ...{ fileName: "lamp.bin", contentType: "application/octet-stream" },
    },
  });
  await releaseFirmware(db, { actor, firmwareId: firmware.id, startRollout: true });
  return {
    sql,
    register: (count) =>
      Promise.all(
        Array.from({ length: count }, async () => {
          const serial = randomBytes(8).toString("hex");
          return (await registerDevice(db, { actor, product: "lamp", serial })).token;
        }),
      ),
    async recordsOf(token) {
      const [row] = await sql<{ upgrades: number; attempts: number; live: number }[]>`
        select count(distinct u.id)::int as upgrades, count(a.id)::int as attempts,
               count(a.id) filter (where a.closed_at is null)::int as live
        from devices d join upgrades u on u.device_id = d.id join upgrade_attempts a on a.upgrade_id = u.id
        where d.token_hash = ${hashToken(token)}`;
      return row ?? { upgrades: 0, attempts: 0, live: 0 };
    },
    async [Symbol.asyncDispose]() {
      await sql.end();
      await database.close();
    },
  };
}
