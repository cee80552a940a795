import { eq, inArray } from "drizzle-orm";
import { findProduct } from "../catalog/products.ts";
import type { Database } from "../database.ts";
import { firmware, rollouts } from "../schema/index.ts";
import { type AttemptFigures, attemptFigures } from "./attempt-figures.ts";
import { type FiguresRequest, type LeftOff, readFigures, requireLimit } from "./read-figures.ts";

export interface ProductFigures extends AttemptFigures {
  readonly devices: number;
  /** What devices run as far as it is known, the most frequent version first. */
  readonly versions: readonly VersionFigure[];
  readonly versionsLeftOff: LeftOff;
}

export interface VersionFigure {
  /** As devices report it; `null`: of these nothing is known. */
  readonly version: string | null;
  readonly count: number;
}

/**
 * The figures of a product's fleet. They are kept, not counted: the work grows with the number of different figures, never
 * with that of devices and attempts, and no more of them are fetched than are asked for. Throws NOT_FOUND, and INVALID_FIELD
 * on a bad limit.
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
  const { greatest: versions, leftOff: versionsLeftOff } = await readFigures(db, {
    owner: (ownerId) => eq(ownerId, id),
    ...{ kinds: [], ranked: "product_version", limit },
  });
  const attempts = await readFigures(db, {
    owner: (ownerId) => inArray(ownerId, rolloutIds),
    ...{ kinds: ["rollout_state"], ranked: "rollout_failure", limit },
  });
  return {
    devices: versions.reduce((sum, { count }) => sum + count, versionsLeftOff.count),
    versions: versions.map(({ key, count }) => ({ version: key === "" ? null : key, count })),
    versionsLeftOff,
    ...attemptFigures(attempts),
  };
}
