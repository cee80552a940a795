import type { Database, UpdateChecks } from "@ota/domain";

/** What handlers work with: made once by `main.ts`, or by a test. */
export interface Services {
  readonly db: Database;
  readonly checks: UpdateChecks;
  /** Where clients reach the service, without a trailing slash: the base of absolute links. */
  readonly publicUrl: string;
}
