import { createOperatorKey } from "@ota/domain";
import type { Config } from "./config.ts";
import { ConfigError } from "./config.ts";
import { openDatabase } from "./database.ts";

/**
 * Makes an operator key by command: the way to the first one, and to another one when the last is lost. Returns the key,
 * which is stored nowhere. The right to do this is the access to the database.
 */
export async function createOperatorKeyByCommand(config: Config, name: string): Promise<string> {
  if (config.database.kind === "embedded") {
    throw new ConfigError(["DATABASE_URL is required: an embedded service keeps its operator key in OTA_DATA_DIR"]);
  }
  const database = await openDatabase(config);
  try {
    const { key } = await createOperatorKey(database.db, { actor: { kind: "system" }, name });
    return key;
  } finally {
    await database.close();
  }
}
