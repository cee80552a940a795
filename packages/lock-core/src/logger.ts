/**
 * What the locks say while they work; pino, bunyan and `console` fit as they are. Owner tokens never appear in it.
 *
 * `debug`: grants, refusals, releases. `warn`: a lease was lost, or a lease could not be given back and stays until its
 * TTL ends. Faults that the caller gets as an error are not logged as well.
 */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

/** The facts of a log line: the `key`, the `store`, and where there is one the error as `err`. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Used when no logger is given: warnings and errors go to `process.emitWarning`, so that none is lost; the rest is dropped. */
export const processWarningLogger: Logger = {
  debug() {},
  info() {},
  warn: emitWarning,
  error: emitWarning,
};

function emitWarning(fields: LogFields, message: string): void {
  const { err, ...facts } = fields;
  const detail = err === undefined ? JSON.stringify(facts) : `${JSON.stringify(facts)} ${String(err)}`;
  process.emitWarning(message, { type: "LockWarning", detail });
}
