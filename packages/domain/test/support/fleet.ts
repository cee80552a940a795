import { createHash, randomUUID } from "node:crypto";
import {
  type CheckEvent,
  createProduct,
  createRollout,
  createUpdateChecks,
  type Database,
  type GivenTerms,
  hashToken,
  listFirmware,
  registerDevice,
  registerFirmware,
  releaseFirmware,
  takeRolloutStep,
  type UpdateChecks,
  type UpdateChecksSettings,
} from "@ota/domain";
import { LockFactory, type LockStore, type Logger, type MemoryState, MemoryStore } from "@ota/lock-core";

const actor = { kind: "system" } as const;

/** A product of its own for one test, with what is needed to fill it by the operators' functions. */
export async function createFleet(
  db: Database,
  options: { readonly confirmBy?: "report" | "version"; readonly versionScheme?: "semver" | "dotted" } = {},
) {
  const product = `p-${randomUUID()}`;
  await createProduct(db, { actor, name: product, ...options });
  return {
    product,
    /** Registers a firmware and releases it, to everybody in the channel unless told otherwise. */
    async release(
      version: string,
      options: {
        readonly hardwareRevisions?: string[];
        readonly requiresVersion?: string;
        readonly startRollout?: boolean;
        readonly channel?: string;
        readonly priority?: number;
        readonly allowDowngrade?: boolean;
      } = {},
    ) {
      const { hardwareRevisions, requiresVersion, startRollout = true, ...rollout } = options;
      const facts = { product, version, artifact: artifactOf(version), hardwareRevisions, requiresVersion };
      const firmware = await registerFirmware(db, { actor, ...facts });
      return releaseFirmware(db, { actor, firmwareId: firmware.id, startRollout, ...rollout });
    },
    /** Starts a rollout of a version that was released before. */
    async rollout(version: string, terms: GivenTerms = {}) {
      const { items } = await listFirmware(db, { product });
      const firmwareId = items.find((one) => one.version === version)?.id ?? "";
      const { id: rolloutId } = await createRollout(db, { actor, firmwareId, ...terms });
      return takeRolloutStep(db, { actor, rolloutId, step: "start" });
    },
    async device(serial: string = randomUUID()) {
      const { device, token } = await registerDevice(db, { actor, product, serial });
      return { ...device, tokenHash: hashToken(token) };
    },
  };
}

/** Facts of an artifact that nobody fetches. */
export function artifactOf(content: string) {
  const digest = (algorithm: string) => createHash(algorithm).update(content).digest("hex");
  return {
    sizeBytes: 1 + content.length,
    sha256: digest("sha256"),
    sha1: digest("sha1"),
    md5: digest("md5"),
    fileName: "firmware.bin",
    contentType: "application/octet-stream",
  };
}

/** Checks as one process makes them, with what they have told their observer and logger. */
export function startChecks(
  db: Database,
  options: { readonly locks?: LockFactory; readonly settings?: UpdateChecksSettings } = {},
): UpdateChecks & { readonly events: CheckEvent[]; readonly warnings: string[] } {
  const events: CheckEvent[] = [];
  const warnings: string[] = [];
  const logger: Logger = { ...quietLogger, warn: (_fields, message) => void warnings.push(message) };
  const { locks = new LockFactory(new MemoryStore(), { logger: quietLogger }), settings } = options;
  const checks = createUpdateChecks({
    db,
    locks,
    logger,
    observer: (event) => void events.push(event),
    ...(settings === undefined ? {} : { settings }),
  });
  return { ...checks, events, warnings };
}

export const quietLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** A store with the four operations and no capability, over memory, some of whose answers a test gives itself. */
export function overMemory(own: Partial<LockStore>, state?: MemoryState): LockStore {
  const memory = new MemoryStore(state === undefined ? {} : { state });
  return {
    name: "over-memory",
    reach: "process",
    acquire: (request) => memory.acquire(request),
    extend: (request) => memory.extend(request),
    release: (request) => memory.release(request),
    isHeld: (request) => memory.isHeld(request),
    ...own,
  };
}
