import { LockKeyConflictError, LockStoreError, type StoreOperation } from "@ota/lock-core";
import { NoAnswerInTime } from "./deadline.ts";
import { NotAcknowledged } from "./replicas.ts";
import { ForeignData, UnexpectedReply } from "./reply.ts";

const SEE_ACL_LINE = "Grant the user the commands and keys of the ACL line in the README of @ota/lock-redis.";

/** What to do about the error replies of Redis, by their first word. */
const REMEDIES: Readonly<Record<string, string>> = {
  READONLY: "The server is a replica. Connect to the master (by Sentinel or Cluster), and try again after a failover.",
  LOADING: "The server is starting up. Try again when it has loaded its data.",
  MASTERDOWN: "The server is a replica that has lost its master. Connect to the master.",
  OOM: "The server is at its memory limit. Raise maxmemory or free memory; keep the policy noeviction.",
  NOPERM: SEE_ACL_LINE,
  NOAUTH: "Give the client a username and password.",
  WRONGPASS: "Give the client a valid username and password.",
  MISCONF: "The server refuses writes because it cannot save its data. See its log.",
  NOREPLICAS: "The server refuses writes because it has too few replicas (min-replicas-to-write).",
  BUSY: "Another script occupies the server. Find it with SLOWLOG; SCRIPT KILL ends one that has not written.",
  CLUSTERDOWN: "The cluster does not serve this key's slot. Try again when it is healthy.",
  TRYAGAIN: "The key's slot is being moved. Try again.",
  MOVED: "The server is part of a cluster. Give the store a Cluster client.",
  ASK: "The server is part of a cluster. Give the store a Cluster client.",
};

/** What to do about refusals inside a script, which have no first word of their own in every version of Redis. */
const REFUSALS_IN_SCRIPTS: readonly (readonly [RegExp, string])[] = [
  [/user executing the script can't/, SEE_ACL_LINE],
  [
    /not allowed from script|Unknown Redis command/,
    "Scripts need the commands of the ACL line in the README of @ota/lock-redis.",
  ],
];

/** Errors after which the server has certainly written nothing: it refused the script, or its first write. */
const WROTE_NOTHING: ReadonlySet<string> = new Set(Object.keys(REMEDIES).filter((code) => code !== "NOPERM"));

/**
 * Whether an acquire that failed with this may yet have been granted, or may be later: true for everything but a refusal
 * that comes before the first write. (NOPERM may be about a later command of the script.)
 */
export function mayBeGranted(error: unknown): boolean {
  if (error instanceof ForeignData) return false;
  const code = replyCode(error);
  return code === undefined || !WROTE_NOTHING.has(code);
}

/** The lock error for whatever came out of a request. The owner token appears nowhere in it. */
export function toLockError(
  error: unknown,
  context: { readonly operation: StoreOperation; readonly key: string; readonly owner?: string | undefined },
): LockStoreError | LockKeyConflictError {
  const { operation, key, owner } = context;
  if (error instanceof ForeignData) return conflict(error, key);
  const cause = withoutSecrets(error, owner);
  return new LockStoreError({ store: "redis", operation, key, cause, reason: reasonFor(error, cause.message) });
}

function conflict({ type, companion }: ForeignData, key: string): LockKeyConflictError {
  if (companion === undefined) return new LockKeyConflictError({ key, found: `data of the type ${type}` });
  return new LockKeyConflictError({ key: companion, found: `data of the type ${type} in place of a fence counter` });
}

function reasonFor(error: unknown, message: string): string {
  if (error instanceof NoAnswerInTime) {
    return (
      `${message}. Whether it was carried out is not known. Check that Redis is reachable and not overloaded, and that ` +
      `no Cluster is moving the key's slot just now, or raise commandTimeoutMs.`
    );
  }
  if (error instanceof NotAcknowledged) {
    return `${message}. Check that the replicas are connected and keep up, and that the user may run WAIT.`;
  }
  if (error instanceof UnexpectedReply) {
    return `${message}. Give the store a connection of its own: none inside MULTI, in subscriber mode or transformed.`;
  }
  const code = replyCode(error);
  if (code === undefined) return `${message}. Check that Redis is reachable and that the client has not been closed.`;
  const remedy = REMEDIES[code] ?? REFUSALS_IN_SCRIPTS.find(([pattern]) => pattern.test(message))?.[1];
  return remedy === undefined ? message : `${message}. ${remedy}`;
}

/**
 * The first word of an error reply, or `undefined` when the error is no reply of the server. Before Redis 7 the error of
 * a command inside a script is wrapped: "ERR Error running script (call to f_…): @user_script:5: -READONLY You can't …".
 */
function replyCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== "ReplyError") return undefined;
  return /: -([A-Z]{2,}) /.exec(error.message)?.[1] ?? /^[A-Z]+/.exec(error.message)?.[0] ?? "ERR";
}

/**
 * A copy of the error, fit for a log. ioredis puts the whole command on its errors, arguments and so the owner token
 * included; and Redis quotes the arguments of a command that it does not know.
 */
function withoutSecrets(error: unknown, owner = ""): Error {
  const message = error instanceof Error ? error.message : String(error);
  const shortened = message.replace(/, with args beginning with:.*$/s, "");
  const copy = new Error(owner === "" ? shortened : shortened.replaceAll(owner, "<owner>"));
  if (!(error instanceof Error)) return copy;
  copy.name = error.name;
  if ("code" in error && typeof error.code === "string") Object.assign(copy, { code: error.code });
  return copy;
}
