import { and, desc, eq, lt } from "drizzle-orm";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { requireOneOf } from "../fields.ts";
import { type Page, type PageRequest, pageOf, pageWindow } from "../pages.ts";
import { isPublicId } from "../public-id.ts";
import { firmware, products } from "../schema/index.ts";
import { FIRMWARE_STATES, type FirmwareState } from "../vocabulary.ts";
import type { ArtifactFacts } from "./artifacts.ts";
import { findProduct, lockCatalog } from "./products.ts";
import { type Rollout, rolloutsOf } from "./rollouts.ts";

/** A version of a product's software. */
export interface Firmware {
  /** Its public id. */
  readonly id: string;
  /** The product's name. */
  readonly product: string;
  /** As it was registered. */
  readonly version: string;
  readonly state: FirmwareState;
  /** The hardware it runs on; empty: any. */
  readonly hardwareRevisions: readonly string[];
  /** The least version that a device must run before it may take this one. */
  readonly requiresVersion: string | null;
  readonly artifact: ArtifactFacts;
  /** Where the file lies on another host, which devices are sent to; `null`: it is stored here. */
  readonly sourceUrl: string | null;
  /** The Ed25519 signature over its manifest, as base64; `null`: it is not signed. */
  readonly signature: string | null;
  /** Its offers, newest first. */
  readonly rollouts: readonly Rollout[];
  readonly createdAt: Date;
  readonly releasedAt: Date | null;
  readonly withdrawnAt: Date | null;
}

/** Reads a firmware. Throws NOT_FOUND. */
export async function getFirmware(db: Database, input: { readonly firmwareId: string }): Promise<Firmware> {
  const found = await findFirmware(db, input.firmwareId);
  const rollouts = await rolloutsOf(db, [found.firmware.id]);
  return toFirmware({ ...found, rollouts: rollouts.get(found.firmware.id) });
}

/** Lists a product's firmware, newest first. Throws NOT_FOUND where there is no such product. */
export async function listFirmware(
  db: Database,
  input: PageRequest & { readonly product: string; readonly state?: FirmwareState | undefined },
): Promise<Page<Firmware>> {
  const window = pageWindow("firmware", input);
  if (input.state !== undefined) requireOneOf("state", input.state, FIRMWARE_STATES);
  const product = await findProduct(db, input.product);
  const rows = await db
    .select()
    .from(firmware)
    .where(
      and(
        eq(firmware.productId, product.id),
        lt(firmware.id, window.beforeId),
        input.state === undefined ? undefined : eq(firmware.state, input.state),
      ),
    )
    .orderBy(desc(firmware.id))
    .limit(window.limit + 1);
  const rollouts = await rolloutsOf(
    db,
    rows.map((row) => row.id),
  );
  return pageOf(window, {
    rows,
    idOf: (row) => row.id,
    toItem: (row) => toFirmware({ firmware: row, product: product.name, rollouts: rollouts.get(row.id) }),
  });
}

/** A firmware's row by its public id, and its product's name. Throws NOT_FOUND. */
export async function findFirmware(
  db: Database,
  firmwareId: string,
): Promise<{ firmware: typeof firmware.$inferSelect; product: string }> {
  const rows = isPublicId(firmwareId)
    ? await db
        .select({ firmware, product: products.name })
        .from(firmware)
        .innerJoin(products, eq(products.id, firmware.productId))
        .where(eq(firmware.publicId, firmwareId))
    : [];
  if (rows[0] === undefined) throw new OtaError("NOT_FOUND", "There is no such firmware.");
  return rows[0];
}

/** Reads a firmware under its product's lock: its state cannot change any more until the transaction ends. */
export async function lockFirmware(tx: Database, firmwareId: string): ReturnType<typeof findFirmware> {
  const unlocked = await findFirmware(tx, firmwareId);
  await lockCatalog(tx, unlocked.firmware.productId);
  return findFirmware(tx, firmwareId);
}

/** Makes the public view of a firmware's row. */
export function toFirmware(found: {
  readonly firmware: typeof firmware.$inferSelect;
  readonly product: string;
  readonly rollouts: readonly Rollout[] | undefined;
}): Firmware {
  const { sizeBytes, sha256, sha1, md5, fileName, contentType, ...row } = found.firmware;
  return {
    id: row.publicId,
    product: found.product,
    version: row.version,
    state: row.state,
    hardwareRevisions: row.hardwareRevisions,
    requiresVersion: row.requiresVersion,
    artifact: { sizeBytes, sha256, sha1, md5, fileName, contentType },
    sourceUrl: row.sourceUrl,
    signature: row.signature?.toString("base64") ?? null,
    rollouts: found.rollouts ?? [],
    createdAt: row.createdAt,
    releasedAt: row.releasedAt,
    withdrawnAt: row.withdrawnAt,
  };
}
