import type { BadRequest } from "./bad-request.ts";

const NO_ID = "00000000-0000-7000-8000-000000000000";
const BY_URL = "/v1/products/lamp/firmware/by-url";
const valid = { version: "9.9.9", sourceUrl: "https://cdn.example/a.bin", sizeBytes: 1, sha256: "a".repeat(64) };

/** Bad input of firmware by address, of signatures, figures and the audit log. */
export const badFirmwareRequests: readonly BadRequest[] = [
  ...[
    ["a size that is text", { sizeBytes: "1" }, "body.sizeBytes"],
    ["a size beyond exact numbers", { sizeBytes: 2 ** 53 }, "body.sizeBytes"],
    ["a SHA-256 of another length", { sha256: "a".repeat(63) }, "body.sha256"],
    ["an MD5 that is none", { md5: "x" }, "body.md5"],
    ["an address of 2049 characters", { sourceUrl: `https://cdn.example/${"a".repeat(2029)}` }, "body.sourceUrl"],
    ["an address with a NUL", { sourceUrl: "https://cdn.example/\0" }, "body.sourceUrl"],
    ["a file name that is a path", { fileName: "../a.bin" }, "body.fileName"],
    ["an unknown field", { url: "https://cdn.example/a.bin" }, "body.url"],
  ].map(([title, fields, field]) => ({
    ...{ title: `firmware by address: ${title}`, path: BY_URL, token: "operator" },
    body: JSON.stringify({ ...valid, ...(fields as object) }),
    ...{ status: 422, code: "FIELDS_INVALID", fields: [String(field)] },
  })),
  ...["ftp://cdn.example/a", "https://a:b@cdn.example/a", "https://", "//cdn.example/a", "https://cdn.example/ä"].map(
    (sourceUrl) => ({
      ...{ title: `firmware by the address ${sourceUrl}`, path: BY_URL, token: "operator" },
      body: JSON.stringify({ ...valid, sourceUrl }),
      ...{ status: 422, code: "INVALID_FIELD" },
    }),
  ),
  ...["x", "-----BEGIN PUBLIC KEY-----", "A".repeat(1024)].map((publicKey) => ({
    ...{ title: `the signing key ${JSON.stringify(publicKey.slice(0, 30))}`, method: "PUT", token: "operator" },
    ...{ path: "/v1/products/lamp/signing-key", body: JSON.stringify({ publicKey }), status: 422 },
    code: "INVALID_FIELD",
  })),
  ...["", "A".repeat(1025)].map((publicKey) => ({
    ...{ title: `a signing key of ${publicKey.length} characters`, method: "PUT", token: "operator" },
    ...{ path: "/v1/products/lamp/signing-key", body: JSON.stringify({ publicKey }), status: 422 },
    ...{ code: "FIELDS_INVALID", fields: ["body.publicKey"] },
  })),
  {
    title: "a signature that is no base64",
    method: "PUT",
    path: `/v1/firmware/${NO_ID}/signature`,
    token: "operator",
    body: '{"signature":"?"}',
    status: 422,
    code: "INVALID_FIELD",
  },
  {
    title: "an upload with a signature for a product without a key",
    path: `/v1/products/lamp/firmware?version=9.9.9&signature=${"A".repeat(86)}%3D%3D`,
    token: "operator",
    type: "application/octet-stream",
    body: "bytes",
    status: 409,
    code: "INVALID_STATE",
  },
  ...[
    ["GET", "/v1/products/none-such/figures"],
    ["GET", `/v1/rollouts/${NO_ID}/figures`],
    ["DELETE", `/v1/firmware/${NO_ID}`],
    ["DELETE", "/v1/products/none-such/signing-key"],
  ].map(([method, path]) => ({
    ...{ title: `${method} ${path}`, method: String(method), path: String(path), token: "operator" },
    ...{ status: 404, code: "NOT_FOUND" },
  })),
  ...[
    ["/v1/products/lamp/figures?limit=201", "query.limit"],
    ["/v1/rollouts/x/figures", "params.rolloutId"],
    ["/v1/audit?actor=me", "query.actor"],
    ["/v1/audit?action=product.explode", "query.action"],
    ["/v1/audit?since=2026-01-01", "query.since"],
  ].map(([path, field]) => ({
    ...{ title: `GET ${path}`, method: "GET", path: String(path), token: "operator" },
    ...{ status: 422, code: "FIELDS_INVALID", fields: [String(field)] },
  })),
];
