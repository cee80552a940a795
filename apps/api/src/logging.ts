import { type DestinationStream, type Logger, pino } from "pino";

/** What {@link createLogger} writes to, and from which level on. */
export interface LoggerOptions {
  readonly level: "debug" | "info" | "warn" | "error" | "silent";
  /**
   * Where the lines go.
   * @default standard output, without waiting for it: `flushSync` before the process ends
   */
  readonly destination?: DestinationStream;
}

/**
 * The service's log: one JSON object a line. Secrets are kept out where they arise (no header, body or query string is
 * ever logged); the redaction here is a second net.
 */
export function createLogger({ level, destination = standardOutput() }: LoggerOptions): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
      redact: { paths: ["authorization", "headers.authorization", "token"], censor: "[redacted]" },
    },
    destination,
  );
}

/** How long a line may wait for others to be written with it, and how many bytes of them: a write costs more than a line. */
const FLUSH_MS = 100;
const FLUSH_BYTES = 16_000;

/** Where lines go, and by which those that still wait are written before the process ends. */
export interface LogOutput extends DestinationStream {
  flushSync(): void;
}

/** Lines are handed over whole and in order; a slow reader at the other end of a pipe does not hold up requests. */
export function standardOutput(): LogOutput {
  const output = pino.destination({
    ...{ dest: 1, sync: false, minLength: FLUSH_BYTES, periodicFlush: FLUSH_MS },
    // Of text, it would measure all that waits with each line anew, which takes longer than the line itself.
    contentMode: "buffer",
  });
  const writeBytes = output.write.bind(output) as unknown as (bytes: Buffer) => boolean;
  return { write: (line) => void writeBytes(Buffer.from(line)), flushSync: () => output.flushSync() };
}

/** How deep a chain of causes is followed. */
const MAX_CAUSES = 5;

/**
 * An error for the log: name, code, message and stack of it and of its causes. Nothing else that hangs on it: database
 * drivers keep a statement's parameters there, and parameters are where secrets are.
 */
function describeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code } = error as { code?: unknown };
  return {
    name: error.name,
    ...(typeof code === "string" || typeof code === "number" ? { code } : {}),
    message: withoutParameters(error.message),
    ...(depth === 0 && error.stack !== undefined ? { stack: withoutParameters(error.stack) } : {}),
    ...(error.cause === undefined || depth === MAX_CAUSES ? {} : { cause: describeError(error.cause, depth + 1) }),
  };
}

/** drizzle's message of a failed query ends with the values of its parameters, which may go over many lines. */
function withoutParameters(text: string): string {
  const start = text.indexOf("\nparams: ");
  if (start === -1) return text;
  const stack = text.indexOf("\n    at ", start);
  return text.slice(0, start) + (stack === -1 ? "" : text.slice(stack));
}
