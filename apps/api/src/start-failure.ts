import { OtaError } from "@ota/domain";
import { ArtifactError } from "./artifacts/artifact-store.ts";
import { ConfigError } from "./config.ts";
import { DataFolderInUseError } from "./data-folder.ts";
import { databaseFault } from "./database-errors.ts";
import { PortInUseError } from "./listen.ts";
import { SchemaOutdatedError } from "./migrations.ts";
import { TracingUnavailableError } from "./tracing/tracing.ts";

/** What a person at a terminal is told about a service that could not start: what to do where that is known, else the stack. */
export function startFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (EXPLAINED.some((kind) => error instanceof kind)) return error.message;
  const { code } = error as NodeJS.ErrnoException;
  if (code === "EADDRNOTAVAIL" || code === "EACCES")
    return `${error.message}. Check HOST, PORT, and who may write the folders.`;
  if (databaseFault(error) === "unavailable") {
    // The first line only: what follows may quote the connection's parameters.
    return `The database of DATABASE_URL is not reachable: ${error.message.split("\n", 1)[0]}`;
  }
  return error.stack ?? error.message;
}

/** Errors whose messages say what to do. */
const EXPLAINED = [
  ConfigError,
  DataFolderInUseError,
  PortInUseError,
  SchemaOutdatedError,
  ArtifactError,
  OtaError,
  TracingUnavailableError,
] as const;
