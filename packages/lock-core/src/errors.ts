/** The stable codes of every error that the lock packages throw. */
export type LockErrorCode =
  | "LOCK_TIMEOUT"
  | "LOCK_LOST"
  | "LOCK_STORE_FAULT"
  | "LOCK_QUORUM"
  | "LOCK_KEY_CONFLICT"
  | "LOCK_INVALID_OPTION";

/** What the errors about one key carry. */
export interface LockErrorContext {
  /** The lock's key. */
  readonly key: string;
  /** The error underneath, where there is one. */
  readonly cause?: unknown;
}

/**
 * Base of all errors of the lock packages. The stable `code` tells them apart, also where two copies of a package are
 * installed and `instanceof` does not. No error carries an owner token.
 */
export abstract class LockError extends Error {
  abstract readonly code: LockErrorCode;
  /** The lock's key, or `undefined` where the error is about no single key. */
  readonly key: string | undefined;

  constructor(message: string, context?: { readonly key?: string | undefined; readonly cause?: unknown }) {
    super(message, context?.cause === undefined ? undefined : { cause: context.cause });
    this.key = context?.key;
  }
}

/** Whether an error comes from the lock packages, from whichever copy of them. */
export function isLockError(error: unknown): error is LockError {
  return error instanceof LockError || (error instanceof Error && "code" in error && /^LOCK_/.test(String(error.code)));
}

/** Whether an error says that a store, or too many of several, failed: a `LockStoreError` from whichever copy. */
export function isStoreFault(error: unknown): error is LockStoreError {
  return isLockError(error) && (error.code === "LOCK_STORE_FAULT" || error.code === "LOCK_QUORUM");
}

/** Waiting ended without a grant: at each attempt somebody else held the key. Retrying later is the remedy. */
export class LockTimeoutError extends LockError {
  override readonly name = "LockTimeoutError";
  override readonly code = "LOCK_TIMEOUT";
  /** How long the caller waited, in milliseconds. */
  readonly waitedMs: number;
  /** How many times the store was asked. */
  readonly attempts: number;

  constructor(context: LockErrorContext & { readonly waitedMs: number; readonly attempts: number }) {
    super(
      `Lock ${quote(context.key)} was still held by someone else after ${Math.round(context.waitedMs)} ms and ` +
        `${context.attempts} attempt(s). Try again later, or wait longer with waitTimeoutMs or maxAttempts.`,
      context,
    );
    this.waitedMs = Math.round(context.waitedMs);
    this.attempts = context.attempts;
  }
}

/** A lease ended, or was taken, before its holder was done: what was protected may have run beside another holder. */
export class LockLostError extends LockError {
  override readonly name = "LockLostError";
  override readonly code = "LOCK_LOST";

  constructor(context: LockErrorContext & { readonly reason: string }) {
    super(
      `The lease on ${quote(context.key)} was lost: ${context.reason}. Check what the protected work has written, and give ` +
        `it a longer ttlMs or extend the lease while it works.`,
      context,
    );
  }
}

/** The operation of a store during which a fault happened. */
export type StoreOperation =
  | "acquire"
  | "extend"
  | "release"
  | "isHeld"
  | "promote"
  | "demote"
  | "inspect"
  | "forceRelease";

const DEEDS: Readonly<Record<StoreOperation, string>> = {
  acquire: "acquire",
  extend: "extend",
  release: "release",
  isHeld: "look up",
  promote: "promote",
  demote: "demote",
  inspect: "inspect",
  forceRelease: "force the release of",
};

/** The backend failed, refused or did not answer in time. It says nothing about who holds the lock. */
export class LockStoreError extends LockError {
  override readonly name: string = "LockStoreError";
  override readonly code: "LOCK_STORE_FAULT" | "LOCK_QUORUM" = "LOCK_STORE_FAULT";
  /** The store's name. */
  readonly store: string;
  readonly operation: StoreOperation;

  constructor(
    context: LockErrorContext & {
      readonly store: string;
      readonly operation: StoreOperation;
      readonly reason: string;
    },
  ) {
    super(
      `The ${context.store} lock store could not ${DEEDS[context.operation]} ${quote(context.key)}: ${context.reason}`,
      context,
    );
    this.store = context.store;
    this.operation = context.operation;
  }
}

/** What one store of a combination has said. Neither an outcome nor an error: its answer was not waited for. */
export interface StoreVote {
  /** The store's name. */
  readonly store: string;
  readonly outcome?: string;
  readonly error?: LockError;
}

/**
 * So many stores of a combination failed that the others could not decide. It is a `LockStoreError`, whose `cause` is the
 * first failure.
 */
export class LockQuorumError extends LockStoreError {
  override readonly name = "LockQuorumError";
  override readonly code = "LOCK_QUORUM";
  /** How many stores had to agree. */
  readonly quorum: number;
  /** What each store has said, in the order in which the stores were given. */
  readonly votes: readonly StoreVote[];

  constructor(
    context: LockErrorContext & {
      readonly store: string;
      readonly operation: StoreOperation;
      readonly quorum: number;
      readonly votes: readonly StoreVote[];
    },
  ) {
    const { quorum, votes } = context;
    const said = votes.map((vote, index) => `${index + 1} (${vote.store}): ${showVote(vote)}`).join("; ");
    super({ ...context, reason: `${quorum} of ${votes.length} stores have to agree, but they said ${said}` });
    this.quorum = quorum;
    this.votes = votes;
  }
}

/** Something that is not a lock lies under the key. It is never overwritten: move it, or use another key. */
export class LockKeyConflictError extends LockError {
  override readonly name = "LockKeyConflictError";
  override readonly code = "LOCK_KEY_CONFLICT";

  constructor(context: LockErrorContext & { readonly found: string }) {
    super(
      `The key ${quote(context.key)} holds ${context.found}, which is no lock. It was left untouched: use another key, or ` +
        `a key prefix of your own.`,
      context,
    );
  }
}

/** An option or argument that cannot be honoured, refused before any request is sent. */
export class LockOptionsError extends LockError {
  override readonly name = "LockOptionsError";
  override readonly code = "LOCK_INVALID_OPTION";
  /** The option's name, such as `ttlMs`. */
  readonly option: string;
  /** The value that was given. */
  readonly value: unknown;

  constructor(context: {
    readonly option: string;
    readonly value: unknown;
    /** What would have been accepted, as a phrase: "an integer of milliseconds from 1 to …". */
    readonly expected: string;
    readonly key?: string;
  }) {
    super(`${context.option} must be ${context.expected}, but was ${show(context.value)}.`, context);
    this.option = context.option;
    this.value = context.value;
  }
}

function showVote({ outcome, error }: StoreVote): string {
  if (error !== undefined) return error.message;
  return outcome ?? "no answer yet";
}

function show(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (typeof value === "object" && value !== null) return `an object (${value.constructor?.name ?? "no prototype"})`;
  return typeof value === "bigint" ? `${value}n` : String(value);
}

/** A key may be of any length and hold any character; a message stays one readable line. */
function quote(text: string): string {
  return JSON.stringify(text.length > 120 ? `${text.slice(0, 120)}…` : text);
}
