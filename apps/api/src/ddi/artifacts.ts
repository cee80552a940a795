import { findArtifactForDevice } from "@ota/domain";
import { sendArtifact } from "../artifacts/send-artifact.ts";
import { artifactView } from "./artifact-view.ts";
import { DdiRefusal, noSuchAction } from "./refusals.ts";
import { type DdiAnswer, type DdiRequest, ddiRoute } from "./route.ts";

/** The files of a firmware: there is one. */
export const artifactList = ddiRoute("GET", "/softwaremodules/{id}/artifacts", {
  async handle({ params: [firmwareId = ""], services, credentials, baseUrl }) {
    const artifact = await findArtifactForDevice(services.db, { ...credentials, firmwareId, beforeConsent: true });
    return { status: 200, body: [artifactView(artifact, { firmwareId, baseUrl })] };
  },
});

/** The file of a firmware that the device was offered, or the MD5 of it. A software module is a firmware, by its id. */
export const artifactFile = ddiRoute("GET", "/softwaremodules/{id}/artifacts/{file}", {
  anyType: true,
  async handle(request) {
    const { params, services, exchange } = request;
    const [firmwareId = "", file] = params;
    const wanted = { ...request.credentials, firmwareId, beforeConsent: true };
    const artifact = await findArtifactForDevice(services.db, wanted);
    const { fileName, md5, sha256, sourceUrl } = artifact;
    if (file === `${fileName}.MD5SUM` && md5 !== null) return md5Sum(fileName, md5);
    if (file !== fileName) throw noSuchAction("There is no such artifact for this device.");
    // Clients follow it and leave their token behind.
    if (sourceUrl !== null) return redirect(sourceUrl);
    requireMatch(request, sha256);
    const { stream } = sendArtifact(artifact, {
      ...{ store: services.artifacts, request: exchange.request, log: exchange.log },
    });
    return {
      stream: (response) => {
        response.setHeader("Last-Modified", artifact.uploadedAt.toUTCString());
        return stream(response);
      },
    };
  },
});

/** Quoted, as the standard has it, or not, as hawkBit compares it. */
function requireMatch({ exchange: { request } }: DdiRequest, sha256: string): void {
  const wanted = request.headers["if-match"];
  if (wanted === undefined) return;
  const tags = wanted.split(",").map((tag) => tag.trim().replace(/^"(.*)"$/, "$1"));
  if (tags.includes(sha256) || tags.includes("*")) return;
  throw new DdiRefusal({
    status: 412,
    errorCode: "hawkbit.server.error.artifact.preconditionFailed",
    message: "The artifact is another one.",
  });
}

function redirect(url: string): DdiAnswer {
  return { stream: async (response) => void response.writeHead(302, { Location: url, "Content-Length": 0 }).end() };
}

/** As `md5sum` reads it, but for the line's end, which hawkBit leaves out. */
function md5Sum(fileName: string, md5: string): DdiAnswer {
  const text = `${md5}  ${fileName}`;
  const headers = {
    "Content-Type": "text/plain",
    "Content-Length": Buffer.byteLength(text),
    "Content-Disposition": `attachment; filename="${fileName}.MD5SUM"`,
  };
  return { stream: async (response) => void response.writeHead(200, headers).end(text) };
}
