import { randomFillSync } from "node:crypto";

/** The member that symfony/lock keeps beside the holder of a write lock: an owner of that name would own all of them. */
const RESERVED_MARKER = "__write__";

const TOKEN_BYTES = 32;

/** Random bytes for 512 tokens. Asking for each token's own ones costs as much as all else that an acquire does here. */
const pool = Buffer.alloc(512 * TOKEN_BYTES);
let used = pool.length;

/**
 * A fresh owner token: 32 random bytes in base64, so 44 characters that nobody can guess and that never repeat.
 *
 * The form is the one that symfony/lock stores, so that both can hold locks in one Redis. Being 44 characters long, a
 * token is never `""` and never the marker `__write__` that symfony/lock reserves.
 */
export function createOwnerToken(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const token = pool.toString("base64", used, used + TOKEN_BYTES);
  used += TOKEN_BYTES;
  return token;
}

/** Whether this can be an owner token: a non-empty string that every backend keeps as it is, and no reserved marker. */
export function isOwnerToken(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value !== RESERVED_MARKER && value.isWellFormed();
}
