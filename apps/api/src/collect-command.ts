import { hasStoredArtifacts, installationId } from "@ota/domain";
import { type Collected, collectGarbage } from "./artifacts/collect-garbage.ts";
import { DiskArtifactStore } from "./artifacts/disk-artifact-store.ts";
import type { Config } from "./config.ts";
import { openDataFolder } from "./data-folder.ts";
import { openDatabase } from "./database.ts";

/** Deletes unused artifacts by command, beside running processes or without any. Embedded: only while none is running. */
export async function collectByCommand(config: Config, options: { readonly dryRun: boolean }): Promise<Collected> {
  const { directory, collectAgeMs } = config.artifacts;
  const folder = config.database.kind === "embedded" ? await openDataFolder(config.dataDirectory) : undefined;
  try {
    const { db, close } = await openDatabase(config);
    try {
      const store = await DiskArtifactStore.open({
        directory,
        installationId: await installationId(db),
        expectsArtifacts: await hasStoredArtifacts(db),
      });
      return await collectGarbage({ db, store, minAgeMs: collectAgeMs, ...options });
    } finally {
      await close();
    }
  } finally {
    folder?.close();
  }
}
