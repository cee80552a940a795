import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** What the names of files end in that are being written and not published yet. */
export const TEMPORARY_SUFFIX = ".part";

const TEMPORARY_NAME = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.part$/;

/** Whether a file's name is one that only this store gives to its temporary files. */
export function isTemporaryFile(name: string): boolean {
  return TEMPORARY_NAME.test(name);
}

/**
 * Removes temporary files that nobody has written to for `olderThanMs`: a process was killed in the middle of an upload.
 * Younger ones may be another process's upload in progress and stay. Returns how many were removed.
 */
export async function removeAbandonedUploads(directory: string, options: { olderThanMs: number }): Promise<number> {
  let removed = 0;
  for (const name of (await readdir(directory)).filter(isTemporaryFile)) {
    const path = join(directory, name);
    const modifiedMs = await modificationTime(path);
    if (modifiedMs === undefined || Date.now() - modifiedMs < options.olderThanMs) continue;
    await rm(path, { force: true });
    removed += 1;
  }
  return removed;
}

/** `undefined` if the file has gone meanwhile: its upload ended. */
async function modificationTime(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
