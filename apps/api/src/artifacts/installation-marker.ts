import { randomUUID } from "node:crypto";
import { access, constants, link, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ArtifactError } from "./artifact-store.ts";
import { isTemporaryFile, TEMPORARY_SUFFIX } from "./temporary-file.ts";

const MARKER_FILE = "installation.json";

/**
 * Ties a folder to one installation, so that no process serves or cleans another's files. An empty folder is marked,
 * unless artifacts must be in it; a marked one must carry the same id. Any number of processes may do this at once: one of
 * them writes the marker.
 *
 * @throws {ArtifactError} `ARTIFACT_DIR_REFUSED` when the folder is another installation's, holds files and no marker, or
 * has no marker although artifacts must be in it.
 */
export async function claimFolder(
  directory: string,
  options: { readonly installationId: string; readonly expectsArtifacts?: boolean },
): Promise<void> {
  const { installationId, expectsArtifacts = false } = options;
  const marked = await readMarker(directory);
  if (marked === undefined && expectsArtifacts) {
    throw refused(
      `${directory} has no ${MARKER_FILE}, and this service's database knows firmware whose files must be in it: it is ` +
        "an empty disk or another folder. Point OTA_ARTIFACT_DIR to the right one, or restore it from the backup. Should " +
        `the files be lost for good, write {"installationId":"${installationId}"} into that file: downloads of what is ` +
        "missing then fail, until the firmware is withdrawn.",
    );
  }
  const owner = marked ?? (await writeMarker(directory, installationId));
  if (owner === installationId) return;
  throw refused(
    `${directory} belongs to the installation ${owner}, this service's database to ${installationId}. Point ` +
      "OTA_ARTIFACT_DIR to the folder that goes with this database, or to an empty one.",
  );
}

/**
 * Resolves where the folder is the installation's and may be written to. Changes nothing.
 *
 * @throws whatever the file system says, or {@link ArtifactError} `ARTIFACT_DIR_REFUSED`.
 */
export async function checkFolder(directory: string, installationId: string): Promise<void> {
  const owner = await readMarker(directory);
  if (owner !== installationId) throw refused(`${directory} has not the marker of the installation ${installationId}.`);
  await access(directory, constants.W_OK);
}

async function readMarker(directory: string): Promise<string | undefined> {
  let text: string;
  try {
    text = await readFile(join(directory, MARKER_FILE), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const id = parseId(text);
  if (id === undefined) throw refused(`${join(directory, MARKER_FILE)} is not readable as a marker. Restore it.`);
  return id;
}

function parseId(text: string): string | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== "object" || parsed === null || !("installationId" in parsed)) return undefined;
    return typeof parsed.installationId === "string" ? parsed.installationId : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the id that the folder carries afterwards: ours, or that of the process that was faster. */
async function writeMarker(directory: string, installationId: string): Promise<string> {
  const foreign = (await readdir(directory)).find((name) => name !== MARKER_FILE && !mayStandUnmarked(name));
  if (foreign !== undefined) {
    throw refused(
      `${directory} is not empty (it holds "${foreign}") and has no ${MARKER_FILE}. Point OTA_ARTIFACT_DIR to an empty ` +
        "folder, or restore the marker.",
    );
  }
  const temporary = join(directory, `${randomUUID()}${TEMPORARY_SUFFIX}`);
  await writeFile(temporary, `${JSON.stringify({ installationId })}\n`, { flag: "wx", flush: true });
  try {
    // A link, unlike a rename, never replaces what another process has put there first.
    await link(temporary, join(directory, MARKER_FILE));
    return installationId;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return (await readMarker(directory)) ?? installationId;
  } finally {
    await rm(temporary, { force: true });
  }
}

/** The root of a file system has `lost+found`; a process that marks the folder right now has a temporary file. */
function mayStandUnmarked(name: string): boolean {
  return name === "lost+found" || isTemporaryFile(name);
}

function refused(message: string): ArtifactError {
  return new ArtifactError("ARTIFACT_DIR_REFUSED", message);
}
