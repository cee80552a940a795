import {
  type ConfirmBy,
  createProduct,
  createRollout,
  type Database,
  type GivenTerms,
  registerDevices,
  registerFirmware,
  releaseFirmware,
  takeRolloutStep,
} from "@ota/domain";
import { openDatabase } from "../../../src/database.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** A device of the storm, before it has asked anything. */
export interface FleetDevice {
  readonly token: string;
  /** What makes its attempts succeed: its word, or that it reports the new version. */
  readonly confirmBy: ConfirmBy;
}

/** The places of the capped rollouts: few, so that many checks run for each. */
export interface StormCaps {
  readonly maxConcurrent: number;
  readonly maxTotal: number;
}

const actor = { kind: "system" } as const;

/** A silent attempt is ended within the run, so that it meets reports which come late. */
const TIMEOUTS_SECONDS = { offered: 20, downloading: 8, downloaded: 8, installing: 8, installed: 20 };

/**
 * Prepares an empty database: for each way of confirming a product with three rollouts, of which one is for all and gives
 * few places at once, one is for half of a group and also gives few places in all, and one has no cap. The files lie on
 * another host, since no device of the storm downloads one.
 */
export async function prepareFleet(
  url: string,
  options: { readonly devices: number; readonly caps: StormCaps; readonly random: SeededRandom },
): Promise<readonly FleetDevice[]> {
  const { caps, random } = options;
  const database = await openDatabase({
    migrate: "auto",
    database: { kind: "postgres", url, poolSize: 4, connectTimeoutMs: 10_000, statementTimeoutMs: 60_000 },
  });
  const { maxConcurrent, maxTotal } = caps;
  const common = { backoffSeconds: 1, maxAttempts: 5, timeoutsSeconds: TIMEOUTS_SECONDS };
  const west = { groups: ["west"], percentageBasisPoints: 5_000, priority: 5 };
  const beta = { groups: ["beta"], percentageBasisPoints: 6_000, priority: 9 };
  try {
    const devices: FleetDevice[] = [];
    for (const [index, confirmBy] of (["version", "report"] as const).entries()) {
      const product = `confirms-by-${confirmBy}`;
      await createProduct(database.db, { actor, name: product, confirmBy });
      await offer(database.db, { product, version: "2.0.0", ...common, maxConcurrent });
      const few = { maxConcurrent: Math.ceil(maxConcurrent / 3), maxTotal };
      await offer(database.db, { product, version: "3.0.0", ...common, ...west, ...few });
      await offer(database.db, { product, version: "4.0.0", ...common, ...beta });
      const count = Math.floor((options.devices + index) / 2);
      const lines = Array.from({ length: count }, (_, device) => {
        const groups = [random.pick(["west", "east"]), ...(random.unit() < 0.3 ? ["beta"] : [])];
        return { line: device + 1, device: { serial: `${confirmBy}-${device}`, groups } };
      });
      const registered = await registerDevices(database.db, { actor, product, lines });
      devices.push(...registered.flatMap(({ token }) => (token === undefined ? [] : [{ token, confirmBy }])));
    }
    return devices;
  } finally {
    await database.close();
  }
}

async function offer(
  db: Database,
  { product, version, ...terms }: GivenTerms & { readonly product: string; readonly version: string },
): Promise<void> {
  const firmware = await registerFirmware(db, {
    ...{ actor, product, version, sourceUrl: `https://files.example/${version}.bin` },
    artifact: {
      ...{ sizeBytes: 8, sha256: "ab".repeat(32), sha1: null, md5: null },
      ...{ fileName: "image.bin", contentType: "application/octet-stream" },
    },
  });
  await releaseFirmware(db, { actor, firmwareId: firmware.id });
  const rollout = await createRollout(db, { actor, firmwareId: firmware.id, ...terms });
  await takeRolloutStep(db, { actor, rolloutId: rollout.id, step: "start" });
}
