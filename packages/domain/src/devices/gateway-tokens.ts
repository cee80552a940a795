import { and, desc, eq, isNull, lt, sql } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import { findProduct } from "../catalog/products.ts";
import { DEFAULT_CHANNEL } from "../catalog/release.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { requireChannel, requireText } from "../fields.ts";
import { type Page, type PageRequest, pageOf, pageWindow } from "../pages.ts";
import { isPublicId, newPublicId } from "../public-id.ts";
import { gatewayTokens, products } from "../schema/index.ts";
import { hashToken, newToken } from "../tokens.ts";

/**
 * A token that many devices share. It registers unknown serials in its product and channel, and serves the product's
 * devices that have no token of their own. Whoever has it can speak for each of those. The secret is stored nowhere.
 */
export interface GatewayToken {
  /** Its public id. */
  readonly id: string;
  readonly product: string;
  /** The channel of the devices that it registers. */
  readonly channel: string;
  /** What uses it. */
  readonly name: string;
  readonly createdAt: Date;
  /** Since when it is refused; `null`: it is live. */
  readonly revokedAt: Date | null;
}

/** Makes a gateway token, which is shown this once. Throws NOT_FOUND on an unknown product, or INVALID_FIELD. */
export async function createGatewayToken(
  db: Database,
  input: {
    readonly actor: Actor;
    readonly product: string;
    readonly name: string;
    /** @default "stable" */
    readonly channel?: string | undefined;
  },
): Promise<{ readonly gatewayToken: GatewayToken; readonly token: string }> {
  const { actor, name, channel = DEFAULT_CHANNEL } = input;
  requireText("name", name);
  requireChannel("channel", channel);
  const token = newToken();
  return db.transaction(async (tx) => {
    const product = await findProduct(tx, input.product);
    const [row] = await tx
      .insert(gatewayTokens)
      .values({ publicId: newPublicId(), productId: product.id, channel, name, tokenHash: hashToken(token) })
      .returning();
    if (row === undefined) throw new Error("The gateway token was not inserted.");
    const after = { product: product.name, channel, name };
    await recordAudit(tx, { actor, action: "gateway_token.create", subjectId: row.publicId, after });
    return { gatewayToken: toGatewayToken({ row, product: product.name }), token };
  });
}

/** Lists a product's gateway tokens, newest first, the revoked ones too. Throws NOT_FOUND on an unknown product. */
export async function listGatewayTokens(
  db: Database,
  input: PageRequest & { readonly product: string },
): Promise<Page<GatewayToken>> {
  const window = pageWindow("gateway_tokens", input);
  const product = await findProduct(db, input.product);
  const rows = await db
    .select()
    .from(gatewayTokens)
    .where(and(eq(gatewayTokens.productId, product.id), lt(gatewayTokens.id, window.beforeId)))
    .orderBy(desc(gatewayTokens.id))
    .limit(window.limit + 1);
  const toItem = (row: typeof gatewayTokens.$inferSelect) => toGatewayToken({ row, product: product.name });
  return pageOf(window, { rows, idOf: (row) => row.id, toItem });
}

/**
 * Revokes a gateway token: it is refused from the commit on. What it registered stays. Revoking it again changes nothing.
 * Throws NOT_FOUND.
 */
export async function revokeGatewayToken(
  db: Database,
  input: { readonly actor: Actor; readonly gatewayTokenId: string },
): Promise<GatewayToken> {
  const { actor, gatewayTokenId } = input;
  if (!isPublicId(gatewayTokenId)) throw notFound();
  return db.transaction(async (tx) => {
    const [found] = await tx
      .select({ row: gatewayTokens, product: products.name })
      .from(gatewayTokens)
      .innerJoin(products, eq(products.id, gatewayTokens.productId))
      .where(eq(gatewayTokens.publicId, gatewayTokenId));
    if (found === undefined) throw notFound();
    const [row] = await tx
      .update(gatewayTokens)
      .set({ revokedAt: sql`now()` })
      .where(and(eq(gatewayTokens.id, found.row.id), isNull(gatewayTokens.revokedAt)))
      .returning();
    // Of two calls at once, one revokes it, and the other is told since when it is.
    if (row === undefined) return toGatewayToken({ ...found, row: await reread(tx, found.row.id) });
    const { name, channel } = row;
    await recordAudit(tx, {
      ...{ actor, action: "gateway_token.revoke", subjectId: row.publicId },
      before: { product: found.product, channel, name, revoked: false },
      after: { product: found.product, channel, name, revoked: true },
    });
    return toGatewayToken({ ...found, row });
  });
}

async function reread(tx: Database, id: bigint): Promise<typeof gatewayTokens.$inferSelect> {
  const [row] = await tx.select().from(gatewayTokens).where(eq(gatewayTokens.id, id));
  if (row === undefined) throw notFound();
  return row;
}

function toGatewayToken(found: {
  readonly row: typeof gatewayTokens.$inferSelect;
  readonly product: string;
}): GatewayToken {
  const { publicId: id, channel, name, createdAt, revokedAt } = found.row;
  return { id, product: found.product, channel, name, createdAt, revokedAt };
}

function notFound(): OtaError {
  return new OtaError("NOT_FOUND", "There is no such gateway token.");
}
