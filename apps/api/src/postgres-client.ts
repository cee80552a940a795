import { connect, type Socket } from "node:net";
import postgres, { type ISql, type Sql, type TransactionSql } from "postgres";
import type { PostgresConfig } from "./config.ts";
import { createOverdueWatch, type OverdueWatch } from "./overdue-watch.ts";
import { type PoolLoad, StatementFlow } from "./statement-flow.ts";

/** What {@link openPostgresClient} needs of the configuration. */
export type PostgresClientOptions = Omit<PostgresConfig, "kind"> & {
  /** @default nobody looks on */
  readonly observeStatement?: StatementObserver | undefined;
};

/**
 * Is told of each statement when it is asked for, and by the function that it returns when it is over. Both are called
 * synchronously, must be quick, and must not throw.
 */
export type StatementObserver = (text: string) => (outcome: "answered" | "failed") => void;

/** A pool of connections to PostgreSQL. */
export interface PostgresClient {
  readonly sql: Sql;
  load(): PoolLoad;
  /** See {@link StatementFlow.takeDelayMs}. */
  takeDelayMs(): number | undefined;
  /** Waits for the statements in flight, then closes the connections. */
  close(): Promise<void>;
}

/** How long a lost connection waits before it is made anew: requests are waiting. */
const RECONNECT_SECONDS = 0.2;

/** A transaction that sits idle holds row locks that others wait for: its process is stuck, or its host is gone. */
const IDLE_TRANSACTION_TIMEOUT_MS = 15_000;

/** How long closing may take. */
const CLOSE_SECONDS = 5;

/**
 * Opens a pool with two properties that the driver lacks:
 *
 * - every statement with parameters is sent prepared, also through `unsafe` and within transactions, which is how drizzle
 *   sends them all. So no statement's text may depend on data, or connections fill up with prepared statements;
 * - nothing waits for ever. A server that has not answered after one and a half times the statement timeout (by then it
 *   would have cancelled the statement itself) is taken for hung: all connections are closed and made anew.
 *
 * No connection is made before the first statement.
 */
export function openPostgresClient(options: PostgresClientOptions): PostgresClient {
  const { statementTimeoutMs, observeStatement } = options;
  const sockets = new Set<Socket>();
  const sql = postgres(options.url, {
    max: options.poolSize,
    connect_timeout: options.connectTimeoutMs / 1000,
    backoff: () => RECONNECT_SECONDS,
    max_lifetime: null,
    onnotice: () => {},
    connection: {
      application_name: "ota-api",
      statement_timeout: statementTimeoutMs,
      idle_in_transaction_session_timeout: IDLE_TRANSACTION_TIMEOUT_MS,
    },
    ...{ socket: trackedSockets(sockets) },
  });
  const watch = createOverdueWatch(statementTimeoutMs * 1.5);
  const onHung = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const flow = new StatementFlow();
  const guard: Guard = { watch, flow, onHung, observeStatement };
  guardStatements(sql, guard);
  guardTransactions(sql, guard);
  return {
    sql,
    load: () => ({ size: options.poolSize, open: sockets.size, ...flow.load() }),
    takeDelayMs: () => flow.takeDelayMs(options.poolSize),
    async close() {
      await sql.end({ timeout: CLOSE_SECONDS });
      watch.stop();
    },
  };
}

interface Guard {
  readonly watch: OverdueWatch;
  readonly flow: StatementFlow;
  readonly observeStatement: StatementObserver | undefined;
  /** Called when the server does not answer. */
  readonly onHung: () => void;
}

function guardStatements(sql: ISql, { watch, flow, onHung, observeStatement }: Guard): void {
  const unsafe = sql.unsafe.bind(sql);
  sql.unsafe = ((text, parameters, options) => {
    const query = unsafe(text, parameters, { ...options, prepare: true });
    const flight = flow.begin(query);
    const endObserving = observeStatement?.(text);
    const endWatch = watch.start(() => {
      // Nothing is known against the server then.
      if (flight.isWaiting) query.cancel();
      else onHung();
    });
    const end = (outcome: "answered" | "failed"): void => {
      endWatch();
      flow.end(flight, outcome);
      endObserving?.(outcome);
    };
    query.then(
      () => end("answered"),
      () => end("failed"),
    );
    return query;
  }) as ISql["unsafe"];
}

/**
 * BEGIN comes through `unsafe` and so is guarded already, the wait for a connection included. COMMIT and ROLLBACK do not:
 * whatever follows the body is one watch.
 */
function guardTransactions(sql: Sql, guard: Guard): void {
  const begin = sql.begin.bind(sql);
  sql.begin = (async <T>(body: (scope: TransactionSql) => Promise<T>): Promise<T> => {
    let end = (): void => {};
    try {
      return (await begin(async (scope) => {
        guardScope(scope, guard);
        try {
          return await body(scope);
        } finally {
          end = guard.watch.start(guard.onHung);
        }
      })) as T;
    } finally {
      end();
    }
  }) as Sql["begin"];
}

function guardScope(scope: TransactionSql, guard: Guard): void {
  guardStatements(scope, guard);
  const savepoint = scope.savepoint.bind(scope);
  scope.savepoint = (<T>(body: (inner: TransactionSql) => Promise<T>) =>
    savepoint((inner) => {
      guardScope(inner, guard);
      return body(inner);
    })) as TransactionSql["savepoint"];
}

/** What the driver hands to its `socket` option: the address in its parsed form. */
interface Address {
  readonly host: readonly string[];
  readonly port: readonly number[];
  readonly path: string | false | undefined;
}

/**
 * Makes the driver's sockets, so that they can be closed from here. They are handed over while they still connect: the
 * driver queues what it writes, limits the time, and takes an error for a lost connection.
 */
function trackedSockets(sockets: Set<Socket>): (address: Address) => Socket {
  let next = 0;
  return ({ host, port, path }) => {
    const index = next++ % host.length;
    const socket = path ? connect(path) : connect(port[index] ?? 5432, host[index]);
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    // The name that TLS checks the certificate against.
    return Object.assign(socket, { host: host[index] });
  };
}
