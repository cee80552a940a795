import { ensureOperatorKey } from "@ota/domain";
import type { Config } from "./config.ts";
import type { DataFolder, FolderSecret } from "./data-folder.ts";
import type { OpenDatabase } from "./database.ts";

/** The keys that the service starts with. */
export interface ServiceKeys {
  /** Signs download URLs. */
  readonly urlSigningKey: Uint8Array;
  /** The operator key of the data folder, where there is one. */
  readonly operatorKey: FolderSecret | undefined;
}

/** Names of the files in the data folder. */
const OPERATOR_KEY_FILE = "operator-key";
const URL_SIGNING_KEY_FILE = "url-signing-key";

/**
 * Takes the keys from the environment; an embedded service makes those that are not there, and keeps them in its data
 * folder. An operator key is known to the database afterwards, unless it was revoked there: revoked stays revoked.
 */
export async function prepareKeys(
  { db }: OpenDatabase,
  { config, folder }: { readonly config: Config; readonly folder: DataFolder | undefined },
): Promise<ServiceKeys> {
  if (config.operatorKey !== undefined)
    await ensureOperatorKey(db, { name: "OTA_OPERATOR_KEY", key: config.operatorKey });
  const operatorKey = config.operatorKey === undefined ? await folder?.secret(OPERATOR_KEY_FILE) : undefined;
  if (operatorKey !== undefined) await ensureOperatorKey(db, { name: OPERATOR_KEY_FILE, key: operatorKey.value });

  const urlSigningKey =
    config.urlSigningKey ?? Buffer.from((await folder?.secret(URL_SIGNING_KEY_FILE))?.value ?? "", "base64url");
  if (urlSigningKey.length < 32)
    throw new Error(`${URL_SIGNING_KEY_FILE} in the data folder is not a key: remove it to have one made.`);
  return { urlSigningKey, operatorKey };
}
