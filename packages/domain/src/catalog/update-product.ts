import { eq } from "drizzle-orm";
import { requireAttemptSettings } from "../attempts/attempt-settings.ts";
import { type Actor, recordAudit } from "../audit.ts";
import type { Database } from "../database.ts";
import { requireAttributeName, requireTimeZone } from "../devices/device-fields.ts";
import { requireInteger } from "../fields.ts";
import type { AuditFacts } from "../schema/audit-log.ts";
import type { SilenceTimeouts } from "../schema/columns.ts";
import { products } from "../schema/index.ts";
import {
  findProduct,
  incrementCatalogRevision,
  lockCatalog,
  POLL_INTERVAL_SECONDS,
  type Product,
  toProduct,
} from "./products.ts";

/** What may change in a product. What is left out stays. */
export interface ProductChanges {
  /** 30 to 86399. */
  readonly pollIntervalSeconds?: number | undefined;
  /** The IANA name of where devices are that have no time zone of their own. */
  readonly timeZone?: string | undefined;
  /** How often a firmware is tried on a device until an operator resets the record, where the rollout does not say. */
  readonly maxAttempts?: number | undefined;
  /** The pause after a record's first attempt, where the rollout does not say; it doubles with each further one. */
  readonly backoffSeconds?: number | undefined;
  /**
   * When a silent attempt is ended, by its state: `null` is never, and a state that is left out has the service's
   * default. It replaces what was set before as a whole, for attempts whose state changes from now on.
   */
  readonly timeoutsSeconds?: SilenceTimeouts | undefined;
  /** By which names DDI devices tell their hardware revision and their version among their attributes; `null`: they do not. */
  readonly hardwareAttribute?: string | null | undefined;
  readonly versionAttribute?: string | null | undefined;
}

/** Changes a product. Values that are so already change nothing. Throws NOT_FOUND or INVALID_FIELD. */
export async function updateProduct(
  db: Database,
  input: ProductChanges & { readonly actor: Actor; readonly product: string },
): Promise<Product> {
  const { actor, product: productName, ...changes } = input;
  if (changes.pollIntervalSeconds !== undefined) {
    requireInteger("pollIntervalSeconds", changes.pollIntervalSeconds, POLL_INTERVAL_SECONDS);
  }
  if (changes.timeZone !== undefined) requireTimeZone("timeZone", changes.timeZone);
  requireAttemptSettings(changes);
  for (const field of ["hardwareAttribute", "versionAttribute"] as const) {
    const name = changes[field];
    if (name != null) requireAttributeName(field, name);
  }
  const { id } = await findProduct(db, productName);
  return db.transaction(async (tx) => {
    await lockCatalog(tx, id);
    const row = await findProduct(tx, productName);
    const before = factsOf(row);
    const after = factsOf({
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

type Settings = { readonly [Name in keyof ProductChanges]-?: Exclude<ProductChanges[Name], undefined> };

function factsOf(settings: Settings): AuditFacts {
  const { pollIntervalSeconds, timeZone, maxAttempts, backoffSeconds, hardwareAttribute, versionAttribute } = settings;
  // In one order, as the database keeps it: two that say the same look the same.
  const timeouts = Object.entries(settings.timeoutsSeconds).sort(([one], [other]) => (one < other ? -1 : 1));
  return {
    ...{ pollIntervalSeconds, timeZone, maxAttempts, backoffSeconds, timeoutsSeconds: Object.fromEntries(timeouts) },
    ...{ hardwareAttribute, versionAttribute },
  };
}
