/** The stable codes of every error that the domain throws on purpose. Anything else is a fault. */
export const OTA_ERROR_CODES = [
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "INVALID_FIELD",
  "LINES_INVALID",
  "INVALID_VERSION",
  "INVALID_STATE",
  "INVALID_CURSOR",
  "SIGNATURE_INVALID",
  "SIGNATURE_REQUIRED",
  "ARTIFACT_WITHDRAWN",
  "CONFIRMATION_REQUIRED",
  "ATTEMPT_CLOSED",
  "DEVICE_TOKEN_INVALID",
  "GATEWAY_TOKEN_INVALID",
  "GATEWAY_TOKEN_REFUSED",
  "OPERATOR_KEY_INVALID",
  "LAST_OPERATOR_KEY",
  "SERVICE_BUSY",
] as const;
export type OtaErrorCode = (typeof OTA_ERROR_CODES)[number];

/** An expected refusal, told apart by its code. Messages and details may be shown to the caller: they hold no secret. */
export class OtaError extends Error {
  readonly code: OtaErrorCode;
  /** Facts for the caller, such as the field that is wrong or the state that was found. */
  readonly details: Readonly<Record<string, unknown>> | undefined;

  constructor(
    code: OtaErrorCode,
    message: string,
    options?: { readonly details?: Readonly<Record<string, unknown>>; readonly cause?: unknown },
  ) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.details = options?.details;
  }
}

/** Too many callers at once for one device and firmware, or the lock store is away: nothing was changed, ask again. */
export class ServiceBusyError extends OtaError {
  /** When to ask again, in whole seconds from now. */
  readonly retryAfterSeconds: number;

  constructor(message: string, options: { readonly retryAfterSeconds: number; readonly cause?: unknown }) {
    super("SERVICE_BUSY", message, {
      details: { retryAfterSeconds: options.retryAfterSeconds },
      ...(options.cause === undefined ? {} : { cause: options.cause }),
    });
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** How deep a chain of causes is followed. */
const MAX_CAUSES = 5;

/** The codes that an error and its causes carry, outermost first: SQLSTATEs and drivers' own, however deep they are wrapped. */
export function* errorCodes(error: unknown): Generator<string> {
  for (let each = error, depth = 0; each instanceof Error && depth < MAX_CAUSES; each = each.cause, depth += 1) {
    const { code } = each as { readonly code?: unknown };
    if (typeof code === "string") yield code;
  }
}
