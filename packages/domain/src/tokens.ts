import { hash, randomBytes } from "node:crypto";

/** 256 bits: far beyond guessing, so that a plain hash is safe to store and to look up by. */
const TOKEN_BYTES = 32;

/** A new secret of 256 random bits, as 43 characters of base64url. It is shown once and never stored. */
export function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString("base64url");
}

/**
 * The SHA-256 of a token's UTF-8 text: what is stored, and what is looked up. Whoever reads the database cannot make a
 * token of it, and a look-up by hash tells nothing by its timing, since nobody can choose the hash's leading bytes.
 */
export function hashToken(token: string): Buffer {
  return hash("sha256", token, "buffer");
}
