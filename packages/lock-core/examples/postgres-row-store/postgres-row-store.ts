/**
 * A store of one's own: a lock is a row of PostgreSQL, each operation one statement, and the server's clock decides.
 * `test/postgres-row-store.test.ts` proves it by the contract suite.
 */
import { createHash } from "node:crypto";
import type {
  AcquireRequest,
  AcquireResult,
  ExtendOutcome,
  ExtendRequest,
  LockStore,
  OwnedKey,
  ReleaseOutcome,
  StoreOperation,
} from "@ota/lock-core";
import { LockStoreError } from "@ota/lock-core";
import type { Sql } from "postgres";

/** The table; a hash keeps any key, however long, and the key itself is there to be read by people. */
export const LOCK_TABLE = `create table lock_row (
  key_hash bytea primary key,
  key_shown text not null,
  owner text not null,
  ends_at timestamptz not null
)`;

export class PostgresRowStore implements LockStore {
  readonly name = "postgres-row";
  readonly reach = "shared";
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** `on conflict` locks the row before it looks at it, so of two that ask at once one waits and then sees the other. */
  async acquire(request: AcquireRequest): Promise<AcquireResult> {
    const { key, owner, ttlMs } = request;
    const rows = await this.#ask("acquire", request, (sql) => {
      return sql`
        insert into lock_row as held (key_hash, key_shown, owner, ends_at)
        values (${hash(key)}, ${shown(key)}, ${owner}, clock_timestamp() + ${ttlMs} * interval '1 ms')
        on conflict (key_hash) do update
          set owner = excluded.owner, ends_at = clock_timestamp() + ${ttlMs} * interval '1 ms'
          where held.owner = excluded.owner or held.ends_at <= clock_timestamp()
        returning owner`;
    });
    return { outcome: rows.length > 0 ? "granted" : "contended" };
  }

  async extend(request: ExtendRequest): Promise<ExtendOutcome> {
    const { key, owner, ttlMs } = request;
    const rows = await this.#ask("extend", request, (sql) => {
      return sql`
        update lock_row set ends_at = clock_timestamp() + ${ttlMs} * interval '1 ms'
        where key_hash = ${hash(key)} and owner = ${owner} and ends_at > clock_timestamp()
        returning owner`;
    });
    return rows.length > 0 ? "extended" : "lost";
  }

  async release(request: OwnedKey): Promise<ReleaseOutcome> {
    const { key, owner } = request;
    const rows = await this.#ask("release", request, (sql) => {
      return sql`
        delete from lock_row where key_hash = ${hash(key)} and owner = ${owner}
        returning ends_at > clock_timestamp() as was_live`;
    });
    return rows[0]?.["was_live"] === true ? "released" : "not-held";
  }

  async isHeld(request: OwnedKey): Promise<boolean> {
    const { key, owner } = request;
    const rows = await this.#ask("isHeld", request, (sql) => {
      return sql`
        select 1 from lock_row
        where key_hash = ${hash(key)} and owner = ${owner} and ends_at > clock_timestamp()`;
    });
    return rows.length > 0;
  }

  /** What goes wrong is a fault, never an outcome. A grant whose answer got lost ends with its TTL. */
  async #ask(operation: StoreOperation, { key }: OwnedKey, statement: (sql: Sql) => PromiseLike<Rows>): Promise<Rows> {
    try {
      return await inTime(statement(this.#sql));
    } catch (cause) {
      const reason = "PostgreSQL failed or did not answer; the cause says how.";
      throw new LockStoreError({ key, store: this.name, operation, reason, cause });
    }
  }
}

type Rows = readonly Readonly<Record<string, unknown>>[];

/** The client tries to connect for ever; an operation of a store has to end. */
const TIMEOUT_MS = 1_000;

async function inTime(answer: PromiseLike<Rows>): Promise<Rows> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(reject, TIMEOUT_MS, new Error(`no answer within ${TIMEOUT_MS} ms`));
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

function hash(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

/** The key as text can hold it. */
function shown(key: string): string {
  return key.slice(0, 200).replaceAll("\u0000", "␀");
}
