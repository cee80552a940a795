/**
 * Every problem that the API answers, by its stable code: the status and the title that go with it. A client may rely on
 * the code; titles and details are for people.
 */
export const PROBLEMS = {
  // What the HTTP layer itself refuses.
  ROUTE_NOT_FOUND: { status: 404, title: "There is nothing at this address" },
  METHOD_NOT_ALLOWED: { status: 405, title: "This address does not know this method" },
  MEDIA_TYPE_UNSUPPORTED: { status: 415, title: "The body has a type that is not accepted here" },
  REQUEST_INVALID: { status: 400, title: "The request is malformed" },
  JSON_INVALID: { status: 400, title: "The body is not valid JSON" },
  BODY_INCOMPLETE: { status: 400, title: "The body ended early" },
  REQUEST_TIMEOUT: { status: 408, title: "The request took too long to arrive" },
  BODY_TOO_LARGE: { status: 413, title: "The body is too large" },
  FIELDS_INVALID: { status: 422, title: "Some fields are not valid" },
  HEADERS_TOO_LARGE: { status: 431, title: "The headers are too large" },
  CREDENTIALS_MISSING: { status: 401, title: "Credentials are missing" },
  DATABASE_UNAVAILABLE: { status: 503, title: "The database is not reachable" },
  METRICS_TOKEN_INVALID: { status: 401, title: "The token of the metrics is not valid" },
  INTERNAL_ERROR: { status: 500, title: "Something went wrong in the service" },
  // What the artifact routes answer.
  SIGNED_URL_INVALID: { status: 403, title: "The signed URL is not valid, or no longer" },
  RANGE_NOT_SATISFIABLE: { status: 416, title: "The range lies outside the artifact" },
  ARTIFACT_TOO_LARGE: { status: 413, title: "The artifact is too large" },
  ARTIFACT_EMPTY: { status: 422, title: "The artifact is empty" },
  ARTIFACT_SIZE_MISMATCH: { status: 422, title: "The artifact has not the announced size" },
  ARTIFACT_SHA256_MISMATCH: { status: 422, title: "The artifact has not the announced SHA-256" },
  ARTIFACT_MISSING: { status: 500, title: "The artifact is missing from the store" },
  STORAGE_FULL: { status: 507, title: "The artifact store is full" },
  // What the domain answers; the codes are those of OtaError.
  NOT_FOUND: { status: 404, title: "Not found" },
  ALREADY_EXISTS: { status: 409, title: "It exists already" },
  INVALID_VERSION: { status: 422, title: "The version is not valid" },
  INVALID_STATE: { status: 409, title: "Its state does not allow this" },
  INVALID_CURSOR: { status: 422, title: "The cursor is not valid" },
  LINES_INVALID: { status: 422, title: "Some lines of the list are not valid" },
  INVALID_FIELD: { status: 422, title: "A field is not valid" },
  DEVICE_TOKEN_INVALID: { status: 401, title: "The device token is not valid" },
  GATEWAY_TOKEN_INVALID: { status: 401, title: "The gateway token is not valid" },
  GATEWAY_TOKEN_REFUSED: { status: 403, title: "The device has a token of its own" },
  OPERATOR_KEY_INVALID: { status: 401, title: "The operator key is not valid" },
  SIGNATURE_INVALID: { status: 422, title: "The signature does not fit the firmware" },
  SIGNATURE_REQUIRED: { status: 409, title: "The product's firmware must be signed by its key" },
  ARTIFACT_WITHDRAWN: { status: 410, title: "The firmware has been withdrawn" },
  CONFIRMATION_REQUIRED: { status: 409, title: "The device has not given its consent" },
  ATTEMPT_CLOSED: { status: 409, title: "The attempt is closed" },
  LAST_OPERATOR_KEY: { status: 409, title: "The last operator key cannot be revoked" },
  // What the limits answer.
  RATE_LIMITED: { status: 429, title: "Too many requests" },
  SERVICE_BUSY: { status: 503, title: "The service is busy" },
} as const satisfies Record<string, { readonly status: number; readonly title: string }>;

/** The stable code of a problem. */
export type ProblemCode = keyof typeof PROBLEMS;

/** One invalid field of a request: where it is (`body.version`, `query.limit`) and what is wrong with it. */
export interface FieldProblem {
  readonly field: string;
  readonly message: string;
}

/** What an {@link HttpProblem} carries beside its code. */
export interface HttpProblemOptions {
  /** What happened and what to do, in one or two sentences; it reaches the client. */
  readonly detail: string;
  readonly cause?: unknown;
  /** Response headers that belong to it, such as `Allow`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Further members of the document (RFC 9457 §3.2), such as `attempt`; never a secret. */
  readonly members?: Readonly<Record<string, unknown>>;
}

/** An answer that is no success, thrown by a handler or by the HTTP layer and sent as `application/problem+json`. */
export class HttpProblem extends Error {
  readonly code: ProblemCode;
  readonly headers: Readonly<Record<string, string>>;
  readonly members: Readonly<Record<string, unknown>>;

  constructor(code: ProblemCode, options: HttpProblemOptions) {
    super(options.detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "HttpProblem";
    this.code = code;
    this.headers = options.headers ?? {};
    this.members = options.members ?? {};
  }
}
