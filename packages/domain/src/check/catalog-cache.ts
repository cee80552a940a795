import { and, eq, ne } from "drizzle-orm";
import type { Database } from "../database.ts";
import { type Catalog, createCatalog } from "../decide/catalog.ts";
import type { CatalogFacts, FirmwareFacts, RolloutFacts } from "../decide/facts.ts";
import { firmware, products, rolloutCounters, rollouts } from "../schema/index.ts";

/** Which catalog a check needs at least: the revision that its own statement has read. */
export interface WantedCatalog {
  readonly productId: bigint;
  readonly revision: bigint;
}

/**
 * Each product's catalog, kept in memory by its revision. Whoever changes what devices can be offered increments the
 * revision in the same transaction, and every check reads it: a change made by any process counts from its commit on.
 */
export class CatalogCache {
  readonly #db: Database;
  readonly #catalogs = new Map<bigint, Catalog>();
  readonly #loading = new Map<bigint, Promise<Catalog>>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** A catalog of at least the wanted revision. Concurrent callers share one load. */
  async get(wanted: WantedCatalog): Promise<Catalog> {
    let catalog = this.#cached(wanted);
    while (catalog === undefined) {
      // A load that began before the wanted revision was committed brings an older one: then once more.
      await this.#load(wanted.productId);
      catalog = this.#cached(wanted);
    }
    return catalog;
  }

  /** The same within a transaction, whose snapshot has the wanted revision. */
  async getWithin(tx: Database, wanted: WantedCatalog): Promise<Catalog> {
    return this.#cached(wanted) ?? this.#keep(await loadCatalog(tx, wanted.productId));
  }

  #cached({ productId, revision }: WantedCatalog): Catalog | undefined {
    const catalog = this.#catalogs.get(productId);
    return catalog !== undefined && catalog.revision >= revision ? catalog : undefined;
  }

  #load(productId: bigint): Promise<Catalog> {
    const underWay = this.#loading.get(productId);
    if (underWay !== undefined) return underWay;
    const loading = loadCatalog(this.#db, productId)
      .then((catalog) => this.#keep(catalog))
      .finally(() => this.#loading.delete(productId));
    this.#loading.set(productId, loading);
    return loading;
  }

  #keep(catalog: Catalog): Catalog {
    const kept = this.#catalogs.get(catalog.productId);
    if (kept !== undefined && kept.revision >= catalog.revision) return kept;
    this.#catalogs.set(catalog.productId, catalog);
    return catalog;
  }
}

/** Reads a product's catalog in one statement, and so from one snapshot. The product must exist. */
export async function loadCatalog(db: Database, productId: bigint): Promise<Catalog> {
  const rows = await db
    .select({
      product: {
        id: products.id,
        revision: products.catalogRevision,
        versionScheme: products.versionScheme,
        confirmBy: products.confirmBy,
        timeZone: products.timeZone,
        maxAttempts: products.maxAttempts,
        backoffSeconds: products.backoffSeconds,
      },
      firmware,
      rollout: rollouts,
      countedId: rolloutCounters.rolloutId,
    })
    .from(products)
    .leftJoin(firmware, and(eq(firmware.productId, products.id), ne(firmware.state, "draft")))
    .leftJoin(rollouts, and(eq(rollouts.firmwareId, firmware.id), ne(rollouts.state, "draft")))
    .leftJoin(rolloutCounters, eq(rolloutCounters.rolloutId, rollouts.id))
    .where(eq(products.id, productId));
  const product = rows[0]?.product;
  if (product === undefined) throw new Error(`Product ${productId} is gone, although a device refers to it.`);

  const firmwareById = new Map<bigint, FirmwareFacts>();
  const rolloutFacts: RolloutFacts[] = [];
  for (const row of rows) {
    if (row.firmware !== null) firmwareById.set(row.firmware.id, row.firmware);
    if (row.rollout !== null) rolloutFacts.push({ ...row.rollout, counted: row.countedId !== null });
  }
  const { id, ...rest } = product;
  const facts: CatalogFacts = { productId: id, ...rest, firmware: [...firmwareById.values()], rollouts: rolloutFacts };
  return createCatalog(facts);
}
