import { randomBytes } from "node:crypto";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** The folder of the embedded mode, held by this process alone until it is closed or the process ends, however it ends. */
export interface DataFolder {
  readonly path: string;
  /**
   * A secret that lives in the folder in a file of its own, which only its owner may read. Made when it is first asked
   * for; the file is whole or not there.
   */
  secret(name: string): Promise<FolderSecret>;
  /** Lets another process have the folder. */
  close(): void;
}

/** A secret of a data folder. */
export interface FolderSecret {
  /** 256 random bits in base64url. */
  readonly value: string;
  /** The file that holds it, and nothing else but a line break. */
  readonly file: string;
  /** Whether it was made by this very call. */
  readonly created: boolean;
}

/** Another process has the folder. */
export class DataFolderInUseError extends Error {
  constructor(path: string) {
    super(
      `Another process is using the data folder ${path}. The embedded database is for one process: end the other one, ` +
        "give this one a folder of its own with OTA_DATA_DIR, or run both on PostgreSQL with DATABASE_URL.",
    );
    this.name = "DataFolderInUseError";
  }
}

/**
 * Opens the folder, making it where it is missing.
 *
 * @throws {DataFolderInUseError} while another process has it.
 */
export async function openDataFolder(path: string): Promise<DataFolder> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  const lock = lockFile(join(path, "lock"), path);
  return {
    path,
    secret: (name) => folderSecret(join(path, name)),
    close: () => lock.close(),
  };
}

/**
 * An exclusive SQLite transaction that is never ended: a lock on the file that the operating system holds for the process.
 * It is gone the moment the process is, SIGKILL included, so there is nothing stale to clean up, and no process id to
 * mistake. Node has no other way to such a lock.
 */
function lockFile(file: string, path: string): DatabaseSync {
  const lock = new DatabaseSync(file);
  try {
    // A journal in memory is no second file in the folder; nothing is ever written.
    lock.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock.close();
    const busy = (error as { errcode?: unknown }).errcode === SQLITE_BUSY;
    throw busy ? new DataFolderInUseError(path) : error;
  }
}

const SQLITE_BUSY = 5;

async function folderSecret(file: string): Promise<FolderSecret> {
  try {
    const value = (await readFile(file, "utf8")).trim();
    if (value === "") throw new Error(`${file} is empty. Restore it, or remove it to have a new secret made.`);
    return { value, file, created: false };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const value = randomBytes(32).toString("base64url");
  const temporary = `${file}.new`;
  await rm(temporary, { force: true });
  const handle = await open(temporary, "wx", 0o600);
  try {
    await handle.writeFile(`${value}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, file);
  return { value, file, created: true };
}
