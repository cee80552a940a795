import { createPublicKey, type KeyObject, verify } from "node:crypto";
import { OtaError } from "../errors.ts";
import { invalidField } from "../fields.ts";

/** What the signature of a firmware vouches for. */
export interface ManifestFacts {
  /** The product's name. */
  readonly product: string;
  /** As it was registered. */
  readonly version: string;
  readonly sizeBytes: number;
  /** Lower-case hex. */
  readonly sha256: string;
}

/** A signature with the raw public key that it is to be verified by. */
export interface KeyedSignature {
  /** 64 bytes. */
  readonly signature: Buffer;
  /** 32 bytes. */
  readonly signatureKey: Buffer;
}

/**
 * The bytes that are signed: five lines of UTF-8, separated by one line feed each, with none after the last. The first one
 * names the purpose, so that no signature made for something else by the same key fits here. No field can hold a line
 * feed, so that no two firmwares have one manifest.
 */
export function firmwareManifest(facts: ManifestFacts): Buffer {
  const { product, version, sizeBytes, sha256 } = facts;
  return Buffer.from(`ota-fw-v1\n${product}\n${version}\n${sizeBytes}\n${sha256}`, "utf8");
}

const RAW_KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;

/** What stands before the raw key in a SubjectPublicKeyInfo of Ed25519 (RFC 8410 §4). */
const SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex");

/**
 * Reads an Ed25519 public key, given as PEM or as the base64 of its raw 32 bytes, and returns the raw bytes.
 * Throws INVALID_FIELD: also on a private key, which must never be sent here.
 */
export function parsePublicKey(text: string): Buffer {
  const expected = "an Ed25519 public key, as PEM (openssl pkey -pubout) or as the base64 of its 32 bytes";
  const pem = text.trim();
  if (!pem.startsWith("-----BEGIN ")) {
    const raw = decodeBase64(text);
    return raw?.length === RAW_KEY_BYTES ? raw : invalidField("publicKey", expected);
  }
  // createPublicKey would also take a private key and derive the public one.
  if (!pem.startsWith("-----BEGIN PUBLIC KEY-----")) invalidField("publicKey", expected);
  let key: KeyObject;
  try {
    key = createPublicKey(pem);
  } catch (cause) {
    // The parser's message is about its own insides; what is accepted is known here.
    throw new OtaError("INVALID_FIELD", `publicKey must be ${expected}.`, {
      details: { field: "publicKey", expected },
      cause,
    });
  }
  if (key.asymmetricKeyType !== "ed25519") invalidField("publicKey", expected);
  return key.export({ format: "der", type: "spki" }).subarray(SPKI_PREFIX.length);
}

/** Reads a detached signature that is given as base64. Throws INVALID_FIELD on what is none. */
export function parseSignature(text: string): Buffer {
  const bytes = decodeBase64(text);
  return bytes?.length === SIGNATURE_BYTES
    ? bytes
    : invalidField("signature", "the base64 of an Ed25519 signature of 64 bytes");
}

/** Throws SIGNATURE_INVALID where the signature is not the key's over the firmware's manifest. */
export function requireSignature({ signature, signatureKey }: KeyedSignature, manifest: ManifestFacts): void {
  const spki = Buffer.concat([SPKI_PREFIX, signatureKey]);
  const key = createPublicKey({ key: spki, format: "der", type: "spki" });
  if (verify(null, firmwareManifest(manifest), key, signature)) return;
  const { product, version, sizeBytes, sha256 } = manifest;
  throw new OtaError(
    "SIGNATURE_INVALID",
    "The signature is not the product key's over this firmware's manifest. Sign exactly these five lines, joined by " +
      "line feeds and without one at the end: ota-fw-v1, product, version, size in bytes, SHA-256.",
    { details: { manifest: { product, version, sizeBytes, sha256 } } },
  );
}

/**
 * Node reads base64 with any dirt in it; here line breaks alone may stand between, which some tools put there. `undefined`:
 * it is no base64.
 */
function decodeBase64(text: string): Buffer | undefined {
  const compact = text.replaceAll(/\s/g, "");
  const bytes = Buffer.from(compact, "base64");
  return bytes.toString("base64") === compact ? bytes : undefined;
}
