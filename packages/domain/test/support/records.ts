import { createHash } from "node:crypto";
import {
  type Actor,
  type ArtifactFacts,
  createProduct,
  type Database,
  type Device,
  type Firmware,
  registerDevice,
  registerFirmware,
  releaseFirmware,
} from "../../src/index.ts";

export const SYSTEM: Actor = { kind: "system" };

let count = 0;

/** A name that no other record of the test file has; it is a valid product name and serial. */
export function uniqueName(prefix: string): string {
  count += 1;
  return `${prefix}-${count}`;
}

/** Facts of a file that holds just `content`. */
export function artifactFacts(content = "firmware"): ArtifactFacts {
  const hash = (algorithm: string) => createHash(algorithm).update(content).digest("hex");
  return {
    sizeBytes: Buffer.byteLength(content),
    sha256: hash("sha256"),
    sha1: hash("sha1"),
    md5: hash("md5"),
    fileName: "firmware.bin",
    contentType: "application/octet-stream",
  };
}

/** A product with a name of its own. */
export async function aProduct(db: Database): Promise<string> {
  const product = await createProduct(db, { actor: SYSTEM, name: uniqueName("product") });
  return product.name;
}

/** A draft. */
export async function aFirmware(db: Database, input: { product: string; version: string }): Promise<Firmware> {
  return registerFirmware(db, { actor: SYSTEM, ...input, artifact: artifactFacts(input.version) });
}

/** A firmware with a running rollout. */
export async function aReleasedFirmware(db: Database, input: { product: string; version: string }): Promise<Firmware> {
  const { id } = await aFirmware(db, input);
  return releaseFirmware(db, { actor: SYSTEM, firmwareId: id, startRollout: true });
}

/** A device with a serial of its own. */
export async function aDevice(db: Database, product: string): Promise<{ device: Device; token: string }> {
  return registerDevice(db, { actor: SYSTEM, product, serial: uniqueName("serial") });
}
