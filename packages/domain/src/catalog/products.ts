import { desc, eq, lt, sql } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { requireOneOf, requirePattern } from "../fields.ts";
import { type Page, type PageRequest, pageOf, pageWindow } from "../pages.ts";
import type { SilenceTimeouts } from "../schema/columns.ts";
import { products } from "../schema/index.ts";
import { CONFIRM_BY, type ConfirmBy, VERSION_SCHEMES, type VersionScheme } from "../vocabulary.ts";
import { type ProductSettings, requireProductSettings, settingsFacts } from "./product-settings.ts";

/** A line of devices that share firmware. */
export interface Product {
  /** Its public id: a slug that never changes. */
  readonly name: string;
  readonly versionScheme: VersionScheme;
  readonly confirmBy: ConfirmBy;
  readonly pollIntervalSeconds: number;
  /** Where a device is that has no time zone of its own: an IANA name. */
  readonly timeZone: string;
  /** As a rollout's of the same names, which come first. */
  readonly maxAttempts: number;
  readonly backoffSeconds: number;
  readonly timeoutsSeconds: SilenceTimeouts;
  /** By which names DDI devices tell their hardware revision and their version among their attributes. */
  readonly hardwareAttribute: string | null;
  readonly versionAttribute: string | null;
  /** The raw Ed25519 public key by which its firmware is signed, as base64; `null`: unsigned firmware is released too. */
  readonly signingPublicKey: string | null;
  /** Grows with every change of what the product's devices can be offered. */
  readonly catalogRevision: bigint;
  readonly createdAt: Date;
}

const PRODUCT_NAME = {
  pattern: /^[a-z0-9][a-z0-9-]{0,62}$/,
  expected: "1 to 63 of the characters a-z 0-9 -, the first one a letter or digit",
};

/**
 * Makes a product. Of parallel calls with one name exactly one succeeds.
 * Throws INVALID_FIELD, or ALREADY_EXISTS where the name is taken.
 */
export async function createProduct(
  db: Database,
  input: ProductSettings & {
    readonly actor: Actor;
    /** `[a-z0-9][a-z0-9-]{0,62}` */
    readonly name: string;
    /** @default "semver" */
    readonly versionScheme?: VersionScheme | undefined;
    /** @default "version" */
    readonly confirmBy?: ConfirmBy | undefined;
  },
): Promise<Product> {
  const { actor, name, versionScheme = "semver", confirmBy = "version", ...given } = input;
  const settings = { ...given, pollIntervalSeconds: given.pollIntervalSeconds ?? 300 };
  requirePattern("name", name, PRODUCT_NAME);
  requireOneOf("versionScheme", versionScheme, VERSION_SCHEMES);
  requireOneOf("confirmBy", confirmBy, CONFIRM_BY);
  requireProductSettings(settings);
  return db.transaction(async (tx) => {
    const [row] = await tx
      .insert(products)
      .values({ name, versionScheme, confirmBy, ...settings })
      .onConflictDoNothing()
      .returning();
    if (row === undefined) {
      throw new OtaError("ALREADY_EXISTS", `There is a product "${name}" already.`, { details: { product: name } });
    }
    const after = { name, versionScheme, confirmBy, ...settingsFacts(row) };
    await recordAudit(tx, { actor, action: "product.create", subjectId: name, after });
    return toProduct(row);
  });
}

/** Reads a product. Throws NOT_FOUND. */
export async function getProduct(db: Database, input: { readonly product: string }): Promise<Product> {
  return toProduct(await findProduct(db, input.product));
}

/** Lists products, newest first. */
export async function listProducts(db: Database, input: PageRequest): Promise<Page<Product>> {
  const window = pageWindow("products", input);
  const rows = await db
    .select()
    .from(products)
    .where(lt(products.id, window.beforeId))
    .orderBy(desc(products.id))
    .limit(window.limit + 1);
  return pageOf(window, { rows, idOf: (row) => row.id, toItem: toProduct });
}

/** A product's row by its name. Throws NOT_FOUND: also on a name that no product can have. */
export async function findProduct(db: Database, name: string): Promise<typeof products.$inferSelect> {
  const rows = PRODUCT_NAME.pattern.test(name) ? await db.select().from(products).where(eq(products.name, name)) : [];
  if (rows[0] === undefined) throw new OtaError("NOT_FOUND", "There is no such product.");
  return rows[0];
}

/**
 * Locks a product's row: whoever changes the catalog does it first of all, so that changes of one product come one after
 * another and `catalog_revision` grows with each.
 */
export async function lockCatalog(tx: Database, productId: bigint): Promise<void> {
  await tx.select({ id: products.id }).from(products).where(eq(products.id, productId)).for("no key update");
}

/** Tells every process that what the product's devices can be offered has changed. */
export async function incrementCatalogRevision(tx: Database, productId: bigint): Promise<void> {
  await tx
    .update(products)
    .set({ catalogRevision: sql`${products.catalogRevision} + 1` })
    .where(eq(products.id, productId));
}

/** Makes the public view of a product's row. */
export function toProduct(row: typeof products.$inferSelect): Product {
  const { name, versionScheme, confirmBy, pollIntervalSeconds, catalogRevision, createdAt } = row;
  const { timeZone, maxAttempts, backoffSeconds, timeoutsSeconds, hardwareAttribute, versionAttribute } = row;
  const signingPublicKey = row.signingPublicKey?.toString("base64") ?? null;
  return {
    ...{ name, versionScheme, confirmBy, pollIntervalSeconds, timeZone, maxAttempts, backoffSeconds, timeoutsSeconds },
    ...{ hardwareAttribute, versionAttribute, signingPublicKey, catalogRevision, createdAt },
  };
}
