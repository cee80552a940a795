import { eq, inArray } from "drizzle-orm";
import { findProduct } from "../catalog/products.ts";
import type { Database } from "../database.ts";
import { firmware, rollouts } from "../schema/index.ts";
import { type AttemptFigures, attemptFigures } from "./attempt-figures.ts";
import { type FiguresRequest, ranked, readFigures, requireLimit } from "./read-figures.ts";

export interface ProductFigures extends AttemptFigures {
  readonly devices: number;
  /** What devices run as far as it is known, the most frequent version first. */
  readonly versions: readonly VersionFigure[];
}

export interface VersionFigure {
  /** As devices report it; `null`: of these nothing is known. */
  readonly version: string | null;
  readonly count: number;
}

/**
 * The figures of a product's fleet. They are kept, not counted: the work grows with the number of different figures, never
 * with that of devices and attempts. Throws NOT_FOUND, and INVALID_FIELD on a bad limit.
 */
export async function productFigures(
  db: Database,
  input: FiguresRequest & { readonly product: string },
): Promise<ProductFigures> {
  const limit = requireLimit(input);
  const { id } = await findProduct(db, input.product);
  const rolloutIds = db
    .select({ id: rollouts.id })
    .from(rollouts)
    .innerJoin(firmware, eq(firmware.id, rollouts.firmwareId))
    .where(eq(firmware.productId, id));
  const versions = await readFigures(db, { kinds: ["product_version"], owner: (ownerId) => eq(ownerId, id) });
  const attempts = await readFigures(db, {
    kinds: ["rollout_state", "rollout_failure"],
    owner: (ownerId) => inArray(ownerId, rolloutIds),
  });
  return {
    devices: versions.reduce((sum, { count }) => sum + count, 0),
    versions: ranked(versions, limit).map(({ key, count }) => ({ version: key === "" ? null : key, count })),
    ...attemptFigures(attempts, limit),
  };
}
