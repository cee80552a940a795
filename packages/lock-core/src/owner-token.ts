import { randomBytes } from "node:crypto";

/**
 * A fresh owner token: 32 random bytes in base64, so 44 characters that nobody can guess and that never repeat.
 *
 * The form is the one that symfony/lock stores, so that both can hold locks in one Redis. Being 44 characters long, a
 * token is never `""` and never the marker `__write__` that symfony/lock reserves.
 */
export function createOwnerToken(): string {
  return randomBytes(32).toString("base64");
}
