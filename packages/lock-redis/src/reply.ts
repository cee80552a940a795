import type { LockSnapshot, PlaceAcquireResult, PlaceReleaseResult, ReleaseOutcome } from "@ota/lock-core";

/** A key holds data of another type: the lock's own, or the one of `companion`. */
export class ForeignData extends Error {
  override readonly name = "ForeignData";
  readonly type: string;
  /** The full name of the key beside the lock, when it is that. */
  readonly companion: string | undefined;

  constructor(type: string, companion?: string) {
    super(`the key holds data of the type ${type}`);
    this.type = type;
    this.companion = companion;
  }
}

/** The answer is none that the scripts give. */
export class UnexpectedReply extends Error {
  override readonly name = "UnexpectedReply";
}

/** What a script answered. */
export interface Answer {
  /** 1 is yes and 0 is no; 2 and 3 are what else a script answers. */
  readonly code: 0 | 1 | 2 | 3;
  readonly fencingToken?: bigint;
}

/** By number, or by text from a client with the option `stringNumbers`. */
const PLAIN_ANSWERS: ReadonlyMap<unknown, Answer> = new Map(
  ([0, 1, 2, 3] as const).flatMap((code): [unknown, Answer][] => [
    [code, { code }],
    [String(code), { code }],
  ]),
);

/**
 * The answer in a script's reply: a number, or { 1, fencing token }.
 *
 * @throws ForeignData for `{ type }` and `{ type, companion }`.
 * @throws UnexpectedReply for anything else, such as the `QUEUED` of a connection inside MULTI.
 */
export function readAnswer(reply: unknown): Answer {
  const plain = PLAIN_ANSWERS.get(reply);
  if (plain !== undefined) return plain;
  if (Array.isArray(reply) && reply.length === 2 && Number(reply[0]) === 1 && /^\d+$/.test(String(reply[1]))) {
    return { code: 1, fencingToken: BigInt(String(reply[1])) };
  }
  throw foreignOrUnexpected(reply);
}

/** What came of a release, whoever is next. */
export function readRelease(reply: unknown): ReleaseOutcome {
  return readAnswer(reply).code === 0 ? "not-held" : "released";
}

/** What came of an acquire: {@link readAnswer}, or { 0, ms } for one that is in line and should ask again by then. */
export function readGrant(reply: unknown): PlaceAcquireResult {
  if (Array.isArray(reply) && reply.length === 2 && Number(reply[0]) === 0 && /^-?\d+$/.test(String(reply[1]))) {
    const ms = Number(reply[1]);
    return { outcome: "contended", retryAfterMs: ms < 0 ? undefined : ms };
  }
  const { code, ...grant } = readAnswer(reply);
  return code === 1 ? { outcome: "granted", ...grant } : { outcome: "contended" };
}

/** What came of a release that may grant the lock to the next waiter: { 2, what {@link readGrant} reads }. */
export function readHandOver(reply: unknown): PlaceReleaseResult {
  if (!Array.isArray(reply) || Number(reply[0]) !== 2) {
    return readAnswer(reply).code === 1 ? { outcome: "released", next: "waits" } : { outcome: "not-held" };
  }
  try {
    const grant = readGrant(reply[1]);
    return { outcome: "released", next: grant.outcome === "granted" ? grant : "turn" };
  } catch {
    return { outcome: "released", next: "turn" }; // The next waiter gets to know when it asks.
  }
}

/**
 * The snapshot in the reply of the inspecting script: { mode, { milliseconds, … } }.
 *
 * @throws ForeignData, UnexpectedReply as {@link readAnswer} does.
 */
export function readSnapshot(reply: unknown): LockSnapshot {
  const [mode, holders] = Array.isArray(reply) ? reply : [];
  if (!Array.isArray(holders)) throw foreignOrUnexpected(reply);
  const remaining = holders.map((ms) => (Number(ms) < 0 ? Number.POSITIVE_INFINITY : Number(ms)));
  return {
    mode: String(mode) as LockSnapshot["mode"],
    holders: remaining.sort((one, other) => one - other).map((remainingMs) => ({ remainingMs })),
  };
}

function foreignOrUnexpected(reply: unknown): ForeignData | UnexpectedReply {
  if (Array.isArray(reply) && (reply.length === 1 || reply.length === 2)) {
    const [type, companion] = reply.map(String);
    return new ForeignData(String(type), companion);
  }
  return new UnexpectedReply(`unexpected reply ${JSON.stringify(reply)?.slice(0, 80)}`);
}
