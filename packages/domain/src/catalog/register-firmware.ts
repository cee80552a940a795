import { and, eq } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { invalidField, requireText } from "../fields.ts";
import { newPublicId } from "../public-id.ts";
import { firmware, type products } from "../schema/index.ts";
import { compareParsed, requireVersion } from "../versions/version.ts";
import { type ArtifactFacts, requireArtifactFacts } from "./artifacts.ts";
import { type Firmware, toFirmware } from "./firmware.ts";
import { findProduct } from "./products.ts";
import { type KeyedSignature, parseSignature, requireSignature } from "./signatures.ts";
import { auditedUrl, requireSourceUrl } from "./source-url.ts";
import { holdStoredArtifacts, uploadLost } from "./stored-artifacts.ts";

/** What an operator says about a firmware; all else is measured. */
export interface NewFirmware {
  /** The product's name. */
  readonly product: string;
  readonly version: string;
  /** @default any hardware */
  readonly hardwareRevisions?: readonly string[] | undefined;
  /** @default none */
  readonly requiresVersion?: string | undefined;
  /** The base64 of the Ed25519 signature over its manifest, by the product's key. @default it can be added to the draft */
  readonly signature?: string | undefined;
}

/** Where a firmware's file is: in the service's own store, or on another host. */
export interface ArtifactPlace {
  /** `http://` or `https://`, without credentials; the service never fetches it. @default the file is in the store */
  readonly sourceUrl?: string | undefined;
  /**
   * Says whether the store holds the file. It is asked in the transaction, while nothing can be deleted from the store
   * (see `deleteUnreferencedArtifact`). @default it is taken to be there
   */
  readonly isStored?: (() => Promise<boolean>) | undefined;
}

/** More kinds of hardware than any one image fits. */
const MAX_HARDWARE_REVISIONS = 64;

/**
 * Registers a firmware as a draft, which is offered to nobody. A version is taken until its draft is deleted, and for ever
 * once it is released, in all its spellings; of parallel calls with one version exactly one succeeds.
 * Throws NOT_FOUND, INVALID_FIELD, INVALID_VERSION, ALREADY_EXISTS with the id of the firmware that has the version,
 * INVALID_STATE where it is signed and the product has no key, SIGNATURE_INVALID, or ServiceBusyError where the file was
 * deleted from the store just now: then it must be uploaded again.
 */
export async function registerFirmware(
  db: Database,
  input: NewFirmware & ArtifactPlace & { readonly actor: Actor; readonly artifact: ArtifactFacts },
): Promise<Firmware> {
  requireArtifactFacts(input.artifact);
  const { sourceUrl = null } = input;
  if (sourceUrl !== null) requireSourceUrl(sourceUrl);
  else if (input.artifact.sha1 === null || input.artifact.md5 === null) {
    invalidField("artifact", "given with all its hashes where the file is stored here");
  }
  const facts = requireFacts(input);
  const { version, hardwareRevisions, requiresVersion } = facts;

  return db.transaction(async (tx) => {
    if (sourceUrl === null) {
      await holdStoredArtifacts(tx);
      if (input.isStored !== undefined && !(await input.isStored())) throw uploadLost();
    }
    const { product, canonicalVersion, signed } = await requireByProduct(tx, facts);
    const { sizeBytes, sha256, sha1, md5, fileName, contentType } = input.artifact;
    if (signed !== undefined) requireSignature(signed, { product: product.name, version, sizeBytes, sha256 });
    const [row] = await tx
      .insert(firmware)
      .values({
        ...{ publicId: newPublicId(), productId: product.id, version, canonicalVersion, hardwareRevisions },
        ...{ requiresVersion, sizeBytes, sha256, sha1, md5, fileName, contentType, sourceUrl, ...signed },
      })
      .onConflictDoNothing()
      .returning();
    if (row === undefined) {
      // The insert has waited for the other one's commit, so that this statement sees its row.
      throw versionTaken(await findVersion(tx, { productId: product.id, canonicalVersion }));
    }
    await recordAudit(tx, {
      actor: input.actor,
      action: "firmware.register",
      subjectId: row.publicId,
      after: {
        ...{ product: product.name, version, hardwareRevisions, requiresVersion, sizeBytes, sha256, fileName },
        ...{ sourceUrl: sourceUrl === null ? null : auditedUrl(sourceUrl), signed: signed !== undefined },
      },
    });
    return toFirmware({ firmware: row, product: product.name, rollouts: [] });
  });
}

/**
 * Throws what `registerFirmware` would throw at this moment, whatever the artifact: so that a large upload can be refused
 * before its bytes are sent. It reserves nothing.
 */
export async function checkNewFirmware(db: Database, input: NewFirmware): Promise<void> {
  const { product, canonicalVersion } = await requireByProduct(db, requireFacts(input));
  const taken = await findVersion(db, { productId: product.id, canonicalVersion });
  if (taken !== undefined) throw versionTaken(taken);
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
  const signature = input.signature === undefined ? undefined : parseSignature(input.signature);
  return { product: input.product, version, hardwareRevisions, requiresVersion, signature };
}

/** Checks the versions by the product's scheme, and that it has a key where there is a signature. */
async function requireByProduct(db: Database, facts: ReturnType<typeof requireFacts>) {
  const { version, requiresVersion, signature } = facts;
  const product = await findProduct(db, facts.product);
  const parsed = requireVersion(product.versionScheme, version);
  const canonicalVersion = parsed.canonical;
  if (requiresVersion !== null) {
    const required = requireVersion(product.versionScheme, requiresVersion);
    // No device that is to be upgraded to it could ever have that version.
    if (compareParsed(required, parsed) >= 0)
      invalidField("requiresVersion", "an older version than the firmware's own");
  }
  const signed: KeyedSignature | undefined =
    signature === undefined ? undefined : { signature, signatureKey: requireSigningKey(product) };
  return { product, canonicalVersion, signed };
}

/** The product's public key. Throws INVALID_STATE where it has none: then nobody could tell whose signature it is. */
export function requireSigningKey(product: typeof products.$inferSelect): Buffer {
  if (product.signingPublicKey !== null) return product.signingPublicKey;
  throw new OtaError("INVALID_STATE", "The product has no key to verify a signature by. Set its signing key first.", {
    details: { product: product.name },
  });
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

/** `undefined`: it was there a moment ago, and its draft has been deleted since. */
function versionTaken(taken: TakenVersion | undefined): OtaError {
  if (taken === undefined) {
    return new OtaError("ALREADY_EXISTS", "The product had a draft of this version until just now. Register it again.");
  }
  return new OtaError(
    "ALREADY_EXISTS",
    `The product has a firmware of version ${taken.version} already. A version is never used twice: ` +
      "register this one under a new version, or delete the other one while it is a draft.",
    { details: { firmwareId: taken.id } },
  );
}
