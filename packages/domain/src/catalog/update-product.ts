import { eq } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import type { Database } from "../database.ts";
import { products } from "../schema/index.ts";
import { type ProductSettings, requireProductSettings, settingsFacts } from "./product-settings.ts";
import { findProduct, incrementCatalogRevision, lockCatalog, type Product, toProduct } from "./products.ts";

export type { ProductSettings as ProductChanges } from "./product-settings.ts";

/** Changes a product. Values that are so already change nothing. Throws NOT_FOUND or INVALID_FIELD. */
export async function updateProduct(
  db: Database,
  input: ProductSettings & { readonly actor: Actor; readonly product: string },
): Promise<Product> {
  const { actor, product: productName, ...changes } = input;
  requireProductSettings(changes);
  const { id } = await findProduct(db, productName);
  return db.transaction(async (tx) => {
    await lockCatalog(tx, id);
    const row = await findProduct(tx, productName);
    const before = settingsFacts(row);
    const after = settingsFacts({
      pollIntervalSeconds: changes.pollIntervalSeconds ?? row.pollIntervalSeconds,
      timeZone: changes.timeZone ?? row.timeZone,
      maxAttempts: changes.maxAttempts ?? row.maxAttempts,
      backoffSeconds: changes.backoffSeconds ?? row.backoffSeconds,
      timeoutsSeconds: changes.timeoutsSeconds ?? row.timeoutsSeconds,
      hardwareAttribute: changes.hardwareAttribute === undefined ? row.hardwareAttribute : changes.hardwareAttribute,
      versionAttribute: changes.versionAttribute === undefined ? row.versionAttribute : changes.versionAttribute,
    });
    if (JSON.stringify(before) !== JSON.stringify(after)) {
      await tx.update(products).set(changes).where(eq(products.id, id));
      await incrementCatalogRevision(tx, id);
      await recordAudit(tx, { actor, action: "product.update", subjectId: row.name, before, after });
    }
    return toProduct(await findProduct(tx, productName));
  });
}
