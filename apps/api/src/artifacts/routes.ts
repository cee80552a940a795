import { findArtifact, findArtifactForDevice } from "@ota/domain";
import { z } from "zod";
import { HttpProblem } from "../http/problems.ts";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { publicIdSchema } from "../http/schemas.ts";
import type { Services } from "../services.ts";
import { sendArtifact } from "./send-artifact.ts";

const params = z.strictObject({ firmwareId: publicIdSchema });

const query = z.strictObject({
  expires: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional().meta({
    description: "From a signed URL: until when it works, in seconds since 1970.",
  }),
  finishing: z.literal("true").optional().meta({
    description: "From a signed URL: the device has the file already, and may read it again while it installs.",
  }),
  signature: z.string().max(100).optional().meta({ description: "From a signed URL." }),
});

const headers = z.object({
  range: z
    .string()
    .optional()
    .meta({ description: "One range of bytes; several are answered with the whole.", example: "bytes=1024-" }),
  "if-range": z.string().optional().meta({ description: "The ETag of the download that Range continues." }),
  "if-none-match": z.string().optional().meta({ description: "ETags that the client has already." }),
});

const responseHeaders = {
  ETag: "The artifact's SHA-256 in quotes: strong, and the same for ever.",
  "Repr-Digest": "The SHA-256 of the whole artifact (RFC 9530).",
  "Accept-Ranges": "bytes",
  "Content-Disposition": "The file's name.",
};

/** Where devices fetch firmware. A GET reads one row and writes none. */
export const artifactRoutes: readonly RouteDefinition[] = [
  defineRoute({
    method: "GET",
    path: "/v1/firmware/{firmwareId}/artifact",
    operationId: "downloadArtifact",
    summary: "Download a firmware's file",
    description:
      "With a device token: any firmware that the device has been offered; every other one answers 404, and one that was " +
      "withdrawn meanwhile 410: then the device stops and checks again. While the device's consent is wanting it is 409. " +
      "Or by the signed URL of a check's answer, which needs no token and works for a limited time, for whoever has it: it " +
      "is of the firmware, and not bound to a device. A download that was cut off is " +
      "continued with Range and If-Range.",
    tag: "Devices",
    auth: "device-or-signature",
    request: { params, query, headers },
    responses: {
      200: { description: "The whole file", contentType: "application/octet-stream", headers: responseHeaders },
      206: {
        description: "The range asked for",
        contentType: "application/octet-stream",
        headers: { ...responseHeaders, "Content-Range": "Which bytes these are, and of how many." },
      },
      302: {
        description: "The file lies on another host, which also answers ranges",
        headers: { Location: "Where the file is. Send no token there." },
      },
      304: { description: "The client has it already" },
    },
    problems: [
      "NOT_FOUND",
      "ARTIFACT_WITHDRAWN",
      "CONFIRMATION_REQUIRED",
      "SIGNED_URL_INVALID",
      "RANGE_NOT_SATISFIABLE",
      "ARTIFACT_MISSING",
    ],
    async handler({ params, query, credentials, raw, log }, services) {
      const { firmwareId } = params;
      const artifact =
        credentials === undefined
          ? await artifactOfSignedUrl({ firmwareId, ...query }, services)
          : await findArtifactForDevice(services.db, { ...credentials, firmwareId });
      const { sourceUrl } = artifact;
      // The address alone: what let the client in here is of no use to another host.
      if (sourceUrl !== null) return { status: 302, headers: { Location: sourceUrl } };
      return sendArtifact(artifact, { store: services.artifacts, request: raw, log });
    },
  }),
];

/** The signature is checked before the database is asked, so that guessing costs nobody anything. */
async function artifactOfSignedUrl(
  signed: {
    readonly firmwareId: string;
    readonly expires?: number | undefined;
    readonly finishing?: "true" | undefined;
    readonly signature?: string | undefined;
  },
  services: Services,
) {
  const { firmwareId, expires, signature } = signed;
  if (expires === undefined || signature === undefined) {
    throw new HttpProblem("CREDENTIALS_MISSING", {
      detail: "Send the device's token as Bearer, or use the whole URL that a check has answered.",
      headers: { "WWW-Authenticate": "Bearer" },
    });
  }
  const finishing = signed.finishing === "true";
  const verdict = services.artifactUrls.verify({ firmwareId, expires, finishing, signature });
  if (verdict !== "valid") {
    const what = verdict === "expired" ? "This URL has expired." : "This URL's signature does not fit.";
    throw new HttpProblem("SIGNED_URL_INVALID", { detail: `${what} Check again: the answer carries a fresh one.` });
  }
  return findArtifact(services.db, { firmwareId, finishing });
}
