import { type LockMode, LockOptionsError, type SerialisedLease } from "@ota/lock-core";
import { type PhpMap, PhpSyntaxError, type PhpValue, phpString, readPhpObject } from "./php-serialized.ts";
import { checkKey, checkOwner } from "./validate.ts";

const KEY_CLASS = "Symfony\\Component\\Lock\\Key";

/** Where a Key keeps its owner token, also for subclasses of this store and for symfony/lock's CombinedStore over them. */
const STORE_CLASS = "Symfony\\Component\\Lock\\Store\\RedisStore";

/** A Key is a name, a number and a token. What is far larger is none, and is not looked at. */
const MAX_LENGTH = 1_000_000;

export interface LeaseFromPhpKeyOptions {
  /**
   * The mode that PHP holds the lock in, which a Key does not tell: `shared` after `acquireRead()`. A wrong one does no harm
   * to others: restoring as `exclusive` promotes a reader if it is the only one, and gives `undefined` otherwise.
   * @default "exclusive"
   */
  readonly mode?: LockMode;
}

/**
 * What a serialised Key of symfony/lock says about the lock that its RedisStore holds, in the form that
 * `LockFactory.restore` takes:
 *
 * ```ts
 * const lease = await locks.restore(leaseFromPhpKey(text));
 * ```
 *
 * It reads what PHP's `serialize($key)` writes, in both its forms (private names up to symfony/lock 7.2, plain ones in later
 * versions), and the JSON of `LockKeyNormalizer` (7.4 and later). Bytes that came from PHP are to be read as UTF-8. The
 * states that other stores have put into the Key are left out, and so is its own idea of when it ends, but for the eye:
 * `deadlineMs` is 0 when it has none. Restoring asks Redis.
 *
 * PHP keeps the name without the prefix of its Redis client, which is the `keyPrefix` here.
 *
 * @throws LockOptionsError for what is no such Key, or holds no token of a RedisStore. The message shows nothing of it.
 */
export function leaseFromPhpKey(text: string, { mode = "exclusive" }: LeaseFromPhpKeyOptions = {}): SerialisedLease {
  if (mode !== "exclusive" && mode !== "shared") {
    throw new LockOptionsError({ option: "mode", value: mode, expected: "exclusive or shared" });
  }
  const { resource, expiringTime, state } = readFields(text);
  if (typeof resource !== "string") throw invalid(text, "a Key with a resource, a string");
  const key = checkKey(resource, "");
  const ended = expiringTime === null ? 0 : expiringTime;
  if (typeof ended !== "number" || !Number.isFinite(ended * 1000)) {
    throw invalid(text, "a Key with an expiringTime, a finite number of seconds or null");
  }
  const token = state instanceof Map ? (state as PhpMap).get(STORE_CLASS) : undefined;
  if (typeof token !== "string") throw invalid(text, "a Key that a RedisStore of symfony/lock has acquired");
  return { version: 1, key, owner: checkOwner(token, key), mode, deadlineMs: Math.floor(ended * 1000) };
}

export interface PhpKeyOptions {
  /** `native` is for PHP's `unserialize()`; `json` is for `LockKeyNormalizer` (symfony/lock 7.4 and later). */
  readonly encoding: "native" | "json";
}

/**
 * The lease as a serialised Key of symfony/lock, for a PHP process to take over; from then on the lease here must neither
 * be extended nor released:
 *
 * ```ts
 * const text = phpKeyFromLease(lease.toJSON(), { encoding: "native" });
 * ```
 *
 * `native` has the plain names, which all versions of symfony/lock read. A Key tells neither the mode nor the fencing token:
 * PHP keeps the lock in the mode it has. It holds the owner token, a secret.
 *
 * @throws LockOptionsError for a lease that PHP could not hold, and for another encoding.
 */
export function phpKeyFromLease(lease: SerialisedLease, { encoding }: PhpKeyOptions): string {
  const resource = checkKey(lease.key, "");
  const token = checkOwner(lease.owner, resource);
  const expiringTime = lease.deadlineMs / 1000;
  if (!Number.isFinite(expiringTime)) {
    throw new LockOptionsError({ option: "lease.deadlineMs", value: lease.deadlineMs, expected: "a finite number" });
  }
  if (encoding === "json") return JSON.stringify({ resource, expiringTime, state: { [STORE_CLASS]: token } });
  if (encoding !== "native") {
    throw new LockOptionsError({ option: "encoding", value: encoding, expected: "native or json" });
  }
  const state = `a:1:{${phpString(STORE_CLASS)}${phpString(token)}}`;
  const fields = [
    phpString("resource"),
    phpString(resource),
    phpString("expiringTime"),
    `d:${expiringTime};`,
    phpString("state"),
    state,
  ];
  return `O:${KEY_CLASS.length}:"${KEY_CLASS}":3:{${fields.join("")}}`;
}

/** What both encodings have: the three properties, their types not looked at yet. */
interface KeyFields {
  readonly resource: unknown;
  readonly expiringTime: unknown;
  /** A map where it is one. */
  readonly state: unknown;
}

function readFields(text: string): KeyFields {
  if (typeof text !== "string" || !text.isWellFormed()) throw invalid(text, "text of well-formed Unicode");
  if (text.length > MAX_LENGTH) throw invalid(text, `text of at most ${MAX_LENGTH} characters`);
  if (text.startsWith("O:")) return fieldsOf(readNative(text));
  if (text.startsWith("{")) {
    const { resource, expiringTime, state } = readJson(text);
    const states = typeof state === "object" && state !== null ? new Map(Object.entries(state)) : undefined;
    return { resource, expiringTime, state: states };
  }
  throw invalid(text, "a Key as serialize() or LockKeyNormalizer writes it");
}

function fieldsOf(properties: PhpMap): Record<keyof KeyFields, PhpValue | undefined> {
  const [resource, expiringTime, state] = ["resource", "expiringTime", "state"].map((name) => properties.get(name));
  return { resource, expiringTime, state };
}

function readNative(text: string): PhpMap {
  try {
    return readPhpObject(text, KEY_CLASS);
  } catch (error) {
    if (!(error instanceof PhpSyntaxError)) throw error;
    throw invalid(text, `what serialize() writes for a Key of symfony/lock (${error.message})`);
  }
}

function readJson(text: string): Readonly<Record<string, unknown>> {
  try {
    // It begins with a brace, so it is an object if it is anything.
    return JSON.parse(text);
  } catch {
    // The parser's own error quotes the text, and so the owner token.
    throw invalid(text, "the JSON of a Key of symfony/lock, but it is no JSON");
  }
}

/** The text itself is not shown: it may hold an owner token. */
function invalid(text: unknown, expected: string): LockOptionsError {
  const value = typeof text === "string" ? `${text.length} characters of something else` : typeof text;
  return new LockOptionsError({ option: "phpKey", value, expected });
}
