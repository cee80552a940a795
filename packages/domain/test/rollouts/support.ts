import { createRollout, type Database, type GivenTerms, type Rollout, releaseFirmware } from "../../src/index.ts";
import { aFirmware, aProduct, SYSTEM } from "../support/records.ts";

/** A rollout that can be started: a draft for a released firmware of a product of its own. */
export async function aReleasedDraft(db: Database, terms: GivenTerms = {}): Promise<Rollout> {
  const firmware = await aFirmware(db, { product: await aProduct(db), version: "1.0.0" });
  await releaseFirmware(db, { actor: SYSTEM, firmwareId: firmware.id });
  return createRollout(db, { actor: SYSTEM, firmwareId: firmware.id, ...terms });
}

/** What a rollout that counts looks like while nothing has happened, or so many of each have. */
export function counting(each: number): Pick<Rollout, "counts"> {
  return { counts: { live: each, granted: each, succeeded: each, failed: each } };
}
