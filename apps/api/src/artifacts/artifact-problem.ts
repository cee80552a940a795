import { HttpProblem } from "../http/problems.ts";
import { ArtifactError } from "./artifact-store.ts";

/** What an error of the artifact store is answered with; errors of other kinds come back as they are. */
export function artifactProblem(error: unknown): unknown {
  if (!(error instanceof ArtifactError)) return error;
  switch (error.code) {
    case "UPLOAD_INCOMPLETE":
      return new HttpProblem("BODY_INCOMPLETE", { detail: error.message, cause: error });
    case "ARTIFACT_MISSING":
      return new HttpProblem("ARTIFACT_MISSING", {
        detail: "The bytes of this firmware are not in the store. Its operators must restore them.",
        cause: error,
      });
    case "ARTIFACT_DIR_REFUSED":
      return error;
    default:
      return new HttpProblem(error.code, { detail: error.message, cause: error, members: error.details });
  }
}
