import { errorCodes } from "@ota/domain";

/**
 * What a failed statement says about the database:
 *
 * - `unavailable`: it cannot be reached, or is starting or ending. Nothing is wrong with the statement.
 * - `busy`: it gave up on this statement (a timeout, a deadlock) and may well take it next time.
 * - `bad-data`: a value could not be stored or compared; a schema let something through that it should not have.
 */
export type DatabaseFault = "unavailable" | "busy" | "bad-data";

/** Tells a database's fault from any other error, whatever driver raised it and however deep it is wrapped. */
export function databaseFault(error: unknown): DatabaseFault | undefined {
  for (const code of errorCodes(error)) {
    const fault = BY_CODE.get(code) ?? BY_CLASS.get(/^[0-9A-Z]{5}$/.test(code) ? code.slice(0, 2) : "");
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** SQLSTATEs (PostgreSQL, appendix A), the driver's own codes, and those of Node's sockets. */
const BY_CODE: ReadonlyMap<string, DatabaseFault> = new Map([
  ...(
    [
      ["57P01", "57P02", "57P03"], // shutting down, crashed, starting up
      ["53300", "25006"], // too many connections, a read-only standby
      ["CONNECTION_CLOSED", "CONNECTION_DESTROYED", "CONNECTION_ENDED", "CONNECT_TIMEOUT", "DATABASE_HUNG"],
      ["ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "ETIMEDOUT"],
      ["ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"],
    ] as const
  )
    .flat()
    .map((code) => [code, "unavailable"] as const),
  ...(["57014", "55P03", "40001", "40P01"] as const).map((code) => [code, "busy"] as const),
]);

/** By the first two characters of an SQLSTATE: connection exceptions, and data exceptions. */
const BY_CLASS: ReadonlyMap<string, DatabaseFault> = new Map([
  ["08", "unavailable"],
  ["22", "bad-data"],
]);
