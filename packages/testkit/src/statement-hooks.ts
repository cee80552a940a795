import type postgres from "postgres";

/** What a test may do to the statements of one side of a race; the product's code knows nothing of it. */
export interface StatementHooks {
  /** The text that is sent instead. */
  readonly rewrite?: (text: string) => string;
  /** Awaited before a statement is sent. */
  readonly before?: (text: string, parameters: readonly unknown[]) => Promise<void>;
  /** Sends statements prepared, as the service does. @default false */
  readonly prepared?: boolean;
}

/** Takes the row locks away: `for update`, whatever it is of, and a write to a device's row that only shows who was there. */
export const withoutRowLocks: StatementHooks = {
  rewrite: (text) =>
    text
      .replace(/\s+for update( of "?\w+"?(, "\w+")*)?( skip locked)?(?=\s*(\)|$))/, "")
      .replace(/update devices set last_seen_at .*?returning unchanged\.\*/s, "select * from unchanged"),
};

/** The client with its statements changed on their way, also within transactions. */
export function hookStatements<T extends postgres.ISql>(client: T, hooks: StatementHooks): T {
  const { rewrite = (text: string) => text, before = async () => {}, prepared = false } = hooks;
  const overrides: Record<PropertyKey, unknown> = {
    unsafe(text: string, parameters: never[] = [], options: postgres.UnsafeQueryOptions = {}) {
      const send = async (values: boolean) => {
        await before(text, parameters);
        const pending = client.unsafe(rewrite(text), parameters, prepared ? { ...options, prepare: true } : options);
        return values ? pending.values() : pending;
      };
      // Of a pending query, drizzle uses these two.
      return {
        values: () => send(true),
        // biome-ignore lint/suspicious/noThenProperty: a pending query is awaited as it is
        then: (...settled: [never, never]) => send(false).then(...settled),
      };
    },
    begin: (work: (tx: postgres.TransactionSql) => unknown) => {
      return (client as unknown as postgres.Sql).begin((tx) => work(hookStatements(tx, hooks)));
    },
  };
  return new Proxy(client, {
    get: (target, property) => overrides[property] ?? Reflect.get(target, property),
  });
}
