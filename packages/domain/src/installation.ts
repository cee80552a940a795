import type { Database } from "./database.ts";
import { newPublicId } from "./public-id.ts";
import { installation } from "./schema/index.ts";

/** The id of the installation that this database belongs to. Made at the first call, the same for ever after. */
export async function installationId(db: Database): Promise<string> {
  await db.insert(installation).values({ publicId: newPublicId() }).onConflictDoNothing();
  const [row] = await db.select({ id: installation.publicId }).from(installation);
  if (row === undefined) throw new Error("The installation's row is gone: somebody deletes from the table.");
  return row.id;
}
