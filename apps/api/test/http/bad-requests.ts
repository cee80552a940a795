/** One bad request and what it must be answered. */
export interface BadRequest {
  readonly title: string;
  readonly method?: string;
  readonly path?: string;
  /** `null`: no Authorization header. */
  readonly token?: "device" | "operator" | string | null;
  /** Further raw header lines. */
  readonly headers?: readonly string[];
  readonly body?: string | Buffer;
  /** @default "application/json" where there is a body */
  readonly type?: string | null;
  readonly status: number;
  readonly code: string;
  /** Header lines that the answer must have. */
  readonly answers?: Readonly<Record<string, string | RegExp>>;
  /** Fields that the answer must name. */
  readonly fields?: readonly string[];
}

const DEEP = "[".repeat(30_000) + "]".repeat(30_000);
const NO_ID = "00000000-0000-7000-8000-000000000000";

/** Every kind of bad input, with the answer that it must get. */
export const badRequests: readonly BadRequest[] = [
  { title: "an unknown route", path: "/v2/check", status: 404, code: "ROUTE_NOT_FOUND" },
  { title: "the root", method: "GET", path: "/", status: 404, code: "ROUTE_NOT_FOUND" },
  { title: "a route with a slash too many", path: "/v1/check/", status: 404, code: "ROUTE_NOT_FOUND" },
  { title: "a route in capitals", path: "/V1/CHECK", status: 404, code: "ROUTE_NOT_FOUND" },
  { title: "a path that climbs", method: "GET", path: "/v1/../../etc/passwd", status: 404, code: "ROUTE_NOT_FOUND" },
  {
    title: "a path with a broken escape",
    method: "GET",
    path: "/v1/devices/%zz",
    token: "operator",
    status: 400,
    code: "REQUEST_INVALID",
  },
  {
    title: "a path with half a UTF-8 character",
    method: "GET",
    path: "/v1/devices/%c3%28",
    token: "operator",
    status: 400,
    code: "REQUEST_INVALID",
  },
  {
    title: "a path of 10 000 characters",
    method: "GET",
    path: `/v1/${"x".repeat(10_000)}`,
    status: 404,
    code: "ROUTE_NOT_FOUND",
  },
  { title: "a wrong method", method: "GET", status: 405, code: "METHOD_NOT_ALLOWED", answers: { allow: "POST" } },
  {
    title: "a wrong method where GET is right",
    method: "DELETE",
    path: "/healthz",
    status: 405,
    code: "METHOD_NOT_ALLOWED",
    answers: { allow: "GET, HEAD" },
  },
  {
    title: "an unusual method",
    method: "PROPFIND",
    status: 405,
    code: "METHOD_NOT_ALLOWED",
    answers: { allow: "POST" },
  },

  {
    title: "no credentials",
    token: null,
    body: "{}",
    status: 401,
    code: "CREDENTIALS_MISSING",
    answers: { "www-authenticate": /^Bearer/ },
  },
  {
    title: "another scheme",
    token: null,
    headers: ["Authorization: Basic YTpi"],
    status: 401,
    code: "CREDENTIALS_MISSING",
    answers: { "www-authenticate": /^Bearer/ },
  },
  {
    title: "an empty token",
    token: null,
    headers: ["Authorization: Bearer "],
    status: 401,
    code: "CREDENTIALS_MISSING",
  },
  {
    title: "two Authorization headers",
    token: "device",
    headers: ["Authorization: Bearer other"],
    status: 401,
    code: "CREDENTIALS_MISSING",
  },
  { title: "a token of 600 characters", token: "x".repeat(600), status: 401, code: "CREDENTIALS_MISSING" },
  {
    title: "an unknown token",
    token: "x".repeat(43),
    status: 401,
    code: "DEVICE_TOKEN_INVALID",
    answers: { "www-authenticate": /invalid_token/ },
  },
  { title: "an operator key as a device token", token: "operator", status: 401, code: "DEVICE_TOKEN_INVALID" },
  {
    title: "a device token as an operator key",
    method: "GET",
    path: "/v1/devices",
    token: "device",
    status: 401,
    code: "OPERATOR_KEY_INVALID",
    answers: { "www-authenticate": /invalid_token/ },
  },
  {
    title: "a revoked operator key",
    method: "GET",
    path: "/v1/devices",
    token: "revoked",
    status: 401,
    code: "OPERATOR_KEY_INVALID",
  },
  { title: "a device token that was rotated", token: "rotated", status: 401, code: "DEVICE_TOKEN_INVALID" },

  {
    title: "a body of another type",
    body: "{}",
    type: "text/plain",
    status: 415,
    code: "MEDIA_TYPE_UNSUPPORTED",
    answers: { accept: "application/json" },
  },
  {
    title: "a form",
    body: "version=1.0.0",
    type: "application/x-www-form-urlencoded",
    status: 415,
    code: "MEDIA_TYPE_UNSUPPORTED",
  },
  { title: "a body without a type", body: "{}", type: null, status: 415, code: "MEDIA_TYPE_UNSUPPORTED" },
  {
    title: "JSON in another character set",
    body: "{}",
    type: "application/json; charset=utf-16",
    status: 415,
    code: "MEDIA_TYPE_UNSUPPORTED",
  },
  {
    title: "two types",
    body: "{}",
    headers: ["Content-Type: text/plain"],
    status: 415,
    code: "MEDIA_TYPE_UNSUPPORTED",
  },
  {
    title: "a compressed body",
    body: "{}",
    headers: ["Content-Encoding: gzip"],
    status: 415,
    code: "MEDIA_TYPE_UNSUPPORTED",
    answers: { "accept-encoding": "identity" },
  },
  {
    title: "an artifact as JSON",
    path: "/v1/products/lamp/firmware?version=1.0.0",
    token: "operator",
    body: "{}",
    status: 415,
    code: "MEDIA_TYPE_UNSUPPORTED",
  },

  { title: "no JSON", body: "{version:1}", status: 400, code: "JSON_INVALID" },
  { title: "half of JSON", body: '{"version":"1.0', status: 400, code: "JSON_INVALID" },
  { title: "JSON that is no UTF-8", body: Buffer.from([0x22, 0xff, 0xfe, 0x22]), status: 400, code: "JSON_INVALID" },
  { title: "a missing body", path: "/v1/products", token: "operator", status: 400, code: "JSON_INVALID" },
  {
    title: "a body over the limit",
    body: JSON.stringify({ version: "x".repeat(70_000) }),
    status: 413,
    code: "BODY_TOO_LARGE",
    answers: { connection: "close" },
  },

  { title: "null for an object", body: "null", status: 422, code: "FIELDS_INVALID", fields: ["body"] },
  { title: "an array for an object", body: "[]", status: 422, code: "FIELDS_INVALID", fields: ["body"] },
  { title: "JSON of 30 000 levels", body: DEEP, status: 422, code: "FIELDS_INVALID", fields: ["body"] },
  {
    title: "30 000 levels in a field",
    body: `{"version":${DEEP}}`,
    status: 422,
    code: "FIELDS_INVALID",
    fields: ["body.version"],
  },
  { title: "a number for text", body: '{"version":1}', status: 422, code: "FIELDS_INVALID", fields: ["body.version"] },
  {
    title: "a NUL in a text",
    body: '{"version":"1.0\\u0000"}',
    status: 422,
    code: "FIELDS_INVALID",
    fields: ["body.version"],
  },
  {
    title: "half a surrogate pair",
    body: '{"version":"\\ud800"}',
    status: 422,
    code: "FIELDS_INVALID",
    fields: ["body.version"],
  },
  {
    title: "an unknown field",
    body: '{"verison":"1.0.0"}',
    status: 422,
    code: "FIELDS_INVALID",
    fields: ["body.verison"],
  },
  {
    title: "a field called __proto__",
    body: '{"__proto__":{"version":"1.0.0"}}',
    status: 422,
    code: "FIELDS_INVALID",
    fields: ["body.__proto__"],
  },
  {
    title: "several bad fields at once",
    path: "/v1/attempts/0/reports",
    body: '{"state":"done","progressPercent":"half"}',
    status: 422,
    code: "FIELDS_INVALID",
    fields: ["params.attemptId", "body.state", "body.progressPercent"],
  },
  {
    title: "an unknown query",
    path: "/v1/check?version=1.0.0",
    status: 422,
    code: "FIELDS_INVALID",
    fields: ["query.version"],
  },
  {
    title: "a query that comes twice",
    method: "GET",
    path: "/v1/devices?limit=1&limit=2",
    token: "operator",
    status: 422,
    code: "FIELDS_INVALID",
    fields: ["query.limit"],
  },
  {
    title: "a NUL in a query",
    method: "GET",
    path: "/v1/audit?subjectId=%00",
    token: "operator",
    status: 422,
    code: "FIELDS_INVALID",
    fields: ["query.subjectId"],
  },
  {
    title: "a cursor of one's own",
    method: "GET",
    path: "/v1/devices?cursor=abc",
    token: "operator",
    status: 422,
    code: "INVALID_CURSOR",
  },
  {
    title: "an id that is none",
    method: "GET",
    path: "/v1/devices/1",
    token: "operator",
    status: 422,
    code: "FIELDS_INVALID",
    fields: ["params.deviceId"],
  },
  {
    title: "an attempt id beyond int32",
    path: "/v1/attempts/2147483648/reports",
    body: '{"state":"failed"}',
    status: 422,
    code: "FIELDS_INVALID",
    fields: ["params.attemptId"],
  },
  {
    title: "an attempt id with an exponent",
    path: "/v1/attempts/1e3/reports",
    body: '{"state":"failed"}',
    status: 422,
    code: "FIELDS_INVALID",
    fields: ["params.attemptId"],
  },
  ...[
    ["a serial that climbs", "../../etc/passwd"],
    ["a serial with a NUL", "a\u0000b"],
    ["a serial with a line break", "a\r\nX-Evil: 1"],
    ["a serial with SQL", "'; drop table devices; --"],
    ["a serial with markup", "<script>alert(1)</script>"],
    ["a serial in another script", "лампа"],
    ["an empty serial", ""],
    ["a serial of 129 characters", "s".repeat(129)],
  ].map(([title = "", serial]) => ({
    ...{ title, path: "/v1/products/lamp/devices", token: "operator", body: JSON.stringify({ serial }) },
    ...{ status: 422, code: "FIELDS_INVALID", fields: ["body.serial"] },
  })),

  {
    title: "another device's attempt",
    path: "/v1/attempts/:attempt/reports",
    token: "other-device",
    body: '{"state":"failed"}',
    status: 404,
    code: "NOT_FOUND",
  },
  {
    title: "an attempt that is none",
    path: "/v1/attempts/2147483647/reports",
    body: '{"state":"failed"}',
    status: 404,
    code: "NOT_FOUND",
  },
  {
    title: "a firmware that was not offered",
    method: "GET",
    path: `/v1/firmware/${NO_ID}/artifact`,
    status: 404,
    code: "NOT_FOUND",
  },
  {
    title: "another device's firmware",
    method: "GET",
    path: "/v1/firmware/:firmware/artifact",
    token: "other-device",
    status: 404,
    code: "NOT_FOUND",
  },
  {
    title: "a product that is none",
    path: "/v1/products/none/devices",
    token: "operator",
    body: '{"serial":"a"}',
    status: 404,
    code: "NOT_FOUND",
  },
  {
    title: "a product that exists",
    path: "/v1/products",
    token: "operator",
    body: '{"name":"lamp"}',
    status: 409,
    code: "ALREADY_EXISTS",
  },
  {
    title: "a version outside the scheme",
    path: "/v1/products/lamp/firmware?version=one",
    token: "operator",
    body: "x",
    type: "application/octet-stream",
    status: 422,
    code: "INVALID_VERSION",
  },
];
