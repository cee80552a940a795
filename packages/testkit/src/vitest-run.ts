/** What the global setup of a vitest run provides to the test processes about PostgreSQL. */
export interface ProvidedPostgres {
  /** A database of the server that all tests of the run share, from which others can be created. */
  readonly serverUrl: string;
  /** What the names of the run's databases start with: the global setup drops those. */
  readonly databasePrefix: string;
  /** A cluster folder to copy for private servers; undefined where PostgreSQL is not installed. */
  readonly template: string | undefined;
}

declare module "vitest" {
  interface ProvidedContext {
    /** Undefined where there is no PostgreSQL. */
    postgres: ProvidedPostgres | undefined;
  }
}

/** What the global setup provided; undefined outside of vitest, and where there is no PostgreSQL. */
export async function providedByRun(): Promise<ProvidedPostgres | undefined> {
  if (process.env["VITEST"] === undefined) return undefined;
  const { inject } = await import("vitest"); // cannot be loaded outside of vitest
  return inject("postgres");
}
