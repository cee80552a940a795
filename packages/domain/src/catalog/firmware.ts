import { and, desc, eq, lt } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { invalidField, requireOneOf, requireText } from "../fields.ts";
import { type Page, type PageRequest, pageOf, pageWindow } from "../pages.ts";
import { isPublicId, newPublicId } from "../public-id.ts";
import { firmware, products } from "../schema/index.ts";
import { requireVersion } from "../versions/version.ts";
import { FIRMWARE_STATES, type FirmwareState } from "../vocabulary.ts";
import { type ArtifactFacts, requireArtifactFacts } from "./artifacts.ts";
import { findProduct } from "./products.ts";
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
  /** Its offers, newest first. */
  readonly rollouts: readonly Rollout[];
  readonly createdAt: Date;
  readonly releasedAt: Date | null;
  readonly withdrawnAt: Date | null;
}

/** What an operator says about a firmware; all else is measured. */
export interface NewFirmware {
  /** The product's name. */
  readonly product: string;
  readonly version: string;
  /** @default any hardware */
  readonly hardwareRevisions?: readonly string[] | undefined;
  /** @default none */
  readonly requiresVersion?: string | undefined;
}

/** More kinds of hardware than any one image fits. */
const MAX_HARDWARE_REVISIONS = 64;

/**
 * Registers a firmware as a draft, which is offered to nobody. A version is taken for ever, in all its spellings; of
 * parallel calls with one version exactly one succeeds.
 * Throws NOT_FOUND, INVALID_FIELD, INVALID_VERSION, or ALREADY_EXISTS with the id of the firmware that has the version.
 */
export async function registerFirmware(
  db: Database,
  input: NewFirmware & { readonly actor: Actor; readonly artifact: ArtifactFacts },
): Promise<Firmware> {
  requireArtifactFacts(input.artifact);
  const facts = requireFacts(input);
  const { version, hardwareRevisions, requiresVersion } = facts;

  return db.transaction(async (tx) => {
    const { product, canonicalVersion } = await requireVersions(tx, facts);
    const { sizeBytes, sha256, sha1, md5, fileName, contentType } = input.artifact;
    const [row] = await tx
      .insert(firmware)
      .values({
        ...{ publicId: newPublicId(), productId: product.id, version, canonicalVersion, hardwareRevisions },
        ...{ requiresVersion, sizeBytes, sha256, sha1, md5, fileName, contentType },
      })
      .onConflictDoNothing()
      .returning();
    if (row === undefined) {
      // The insert has waited for the other one's commit, so that this statement sees its row.
      const taken = await findVersion(tx, { productId: product.id, canonicalVersion });
      throw taken === undefined
        ? new Error("A firmware was there and is gone: somebody deletes them.")
        : versionTaken(taken);
    }
    await recordAudit(tx, {
      actor: input.actor,
      action: "firmware.register",
      subjectId: row.publicId,
      after: { product: product.name, version, hardwareRevisions, requiresVersion, sizeBytes, sha256, fileName },
    });
    return toFirmware({ firmware: row, product: product.name, rollouts: [] });
  });
}

/**
 * Throws what `registerFirmware` would throw at this moment, whatever the artifact: so that a large upload can be refused
 * before its bytes are sent. It reserves nothing.
 */
export async function checkNewFirmware(db: Database, input: NewFirmware): Promise<void> {
  const { product, canonicalVersion } = await requireVersions(db, requireFacts(input));
  const taken = await findVersion(db, { productId: product.id, canonicalVersion });
  if (taken !== undefined) throw versionTaken(taken);
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
    rollouts: found.rollouts ?? [],
    createdAt: row.createdAt,
    releasedAt: row.releasedAt,
    withdrawnAt: row.withdrawnAt,
  };
}

/** Checks what needs no database, and puts it into the form in which it is kept. */
function requireFacts(input: NewFirmware) {
  const hardwareRevisions = [...new Set(input.hardwareRevisions ?? [])];
  if (hardwareRevisions.length > MAX_HARDWARE_REVISIONS) {
    invalidField("hardwareRevisions", `at most ${MAX_HARDWARE_REVISIONS} hardware revisions`);
  }
  for (const revision of hardwareRevisions) requireText("hardwareRevisions", revision);
  const version = input.version.trim();
  const requiresVersion = input.requiresVersion?.trim() ?? null;
  requireText("version", version);
  if (requiresVersion !== null) requireText("requiresVersion", requiresVersion);
  return { product: input.product, version, hardwareRevisions, requiresVersion };
}

/** Checks the versions by the product's scheme. */
async function requireVersions(db: Database, facts: ReturnType<typeof requireFacts>) {
  const { version, requiresVersion } = facts;
  const product = await findProduct(db, facts.product);
  const canonicalVersion = requireVersion(product.versionScheme, version).canonical;
  if (requiresVersion !== null) requireVersion(product.versionScheme, requiresVersion);
  return { product, canonicalVersion };
}

interface TakenVersion {
  readonly id: string;
  readonly version: string;
}

async function findVersion(
  db: Database,
  wanted: { readonly productId: bigint; readonly canonicalVersion: string },
): Promise<TakenVersion | undefined> {
  const [taken] = await db
    .select({ id: firmware.publicId, version: firmware.version })
    .from(firmware)
    .where(and(eq(firmware.productId, wanted.productId), eq(firmware.canonicalVersion, wanted.canonicalVersion)));
  return taken;
}

function versionTaken(taken: TakenVersion): OtaError {
  return new OtaError(
    "ALREADY_EXISTS",
    `The product has a firmware of version ${taken.version} already. A version is never used twice: ` +
      "register this one under a new version.",
    { details: { firmwareId: taken.id } },
  );
}
