import { LockOptionsError } from "./errors.ts";
import { checkKey } from "./options.ts";
import { isOwnerToken } from "./owner-token.ts";
import type { LockMode } from "./store.ts";

/**
 * A lease on its way to another process: what `JSON.stringify(lease)` writes and `LockFactory.restore` reads.
 *
 * It carries the owner token, and whoever has that owns the lease: send it as you would send a password, and log it
 * nowhere.
 */
export interface SerialisedLease {
  readonly version: 1;
  readonly key: string;
  /** The owner token. */
  readonly owner: string;
  readonly mode: LockMode;
  /**
   * When the lease ends, in milliseconds since 1970 by the wall clock of the process that wrote this. To be read by
   * people: a restored lease has the deadline that the store confirms.
   */
  readonly deadlineMs: number;
  /** The fencing token in decimal digits, when the lease has one. */
  readonly fencingToken?: string;
}

/**
 * What JSON text, or the object that was parsed from it, says about a lease.
 *
 * @throws LockOptionsError when it is not what `JSON.stringify(lease)` writes. The message shows no owner token.
 */
export function parseLease(serialised: unknown): SerialisedLease {
  const fields = typeof serialised === "string" ? parseJson(serialised) : serialised;
  if (typeof fields !== "object" || fields === null) throw invalid("lease", typeof fields, "a serialised lease");
  const { version, key, owner, mode, deadlineMs, fencingToken } = fields as Readonly<Record<string, unknown>>;
  if (version !== 1) throw invalid("version", version, "1, the only one that this version of the package reads");
  if (!isOwnerToken(owner)) throw invalid("owner", typeof owner, "an owner token");
  if (mode !== "exclusive" && mode !== "shared") throw invalid("mode", mode, "exclusive or shared");
  if (!Number.isFinite(deadlineMs)) throw invalid("deadlineMs", deadlineMs, "milliseconds since 1970");
  const lease = { version, key: checkKey(key as string), owner, mode, deadlineMs: deadlineMs as number } as const;
  if (fencingToken === undefined) return lease;
  if (typeof fencingToken === "string" && /^[1-9]\d{0,18}$/.test(fencingToken)) return { ...lease, fencingToken };
  throw invalid("fencingToken", fencingToken, "left out, or a string of up to 19 decimal digits");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own error quotes the text, and so the owner token.
    throw invalid("lease", "text", "a serialised lease, but this text is no JSON");
  }
}

function invalid(option: string, value: unknown, expected: string): LockOptionsError {
  return new LockOptionsError({ option: option === "lease" ? option : `lease.${option}`, value, expected });
}
