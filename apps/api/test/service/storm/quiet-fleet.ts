import { createProduct, registerDevices } from "@ota/domain";
import postgresClient from "postgres";
import { openDatabase } from "../../../src/database.ts";

/** A device that has reported its version long ago, and for which there is nothing new. */
export interface QuietDevice {
  /** Its public id. */
  readonly id: string;
  readonly token: string;
}

/** As many as one call registers. */
const BATCH = 10_000;

const actor = { kind: "system" } as const;

/** Prepares an empty database with devices as they are after an outage: known, and with nothing to write about them. */
export async function prepareQuietFleet(
  url: string,
  options: { readonly devices: number; readonly pollIntervalSeconds: number },
): Promise<readonly QuietDevice[]> {
  const { pollIntervalSeconds } = options;
  const product = "lamp";
  const database = await openDatabase({
    migrate: "auto",
    database: { kind: "postgres", url, poolSize: 1, connectTimeoutMs: 10_000, statementTimeoutMs: 60_000 },
  });
  const devices: QuietDevice[] = [];
  try {
    await createProduct(database.db, { actor, name: product, pollIntervalSeconds });
    while (devices.length < options.devices) {
      const count = Math.min(BATCH, options.devices - devices.length);
      const lines = Array.from({ length: count }, (_, index) => ({
        line: index + 1,
        device: { serial: `lamp-${devices.length + index}` },
      }));
      const registered = await registerDevices(database.db, { actor, product, lines });
      devices.push(...registered.flatMap(({ id, token }) => (token === undefined ? [] : [{ id, token }])));
    }
  } finally {
    await database.close();
  }
  const sql = postgresClient(url, { max: 1, onnotice: () => {} });
  await sql`update devices set reported_version = '2.0.0'`;
  await sql`vacuum analyze devices`;
  await sql.end();
  return devices;
}
