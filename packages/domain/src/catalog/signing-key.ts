import { eq } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import type { Database } from "../database.ts";
import { products } from "../schema/index.ts";
import { findProduct, lockCatalog, type Product, toProduct } from "./products.ts";
import { parsePublicKey } from "./signatures.ts";

/**
 * Gives a product the public key by which its firmware is signed, in the place of any that it has: from the commit on only
 * firmware that is signed with this key can be released. Drafts that are signed with another one must be signed anew;
 * what is released already stays so. Setting the same key again changes nothing.
 * Throws NOT_FOUND or INVALID_FIELD.
 */
export async function setSigningKey(
  db: Database,
  input: {
    readonly actor: Actor;
    readonly product: string;
    /** PEM, or the base64 of the raw 32 bytes. */
    readonly publicKey: string;
  },
): Promise<Product> {
  return changeSigningKey(db, { ...input, key: parsePublicKey(input.publicKey) });
}

/** Lets the product release unsigned firmware again. Where it has no key nothing is changed. Throws NOT_FOUND. */
export async function removeSigningKey(
  db: Database,
  input: { readonly actor: Actor; readonly product: string },
): Promise<Product> {
  return changeSigningKey(db, { ...input, key: null });
}

/** Under the product's lock, which every release takes: a release is before the change, or keeps to it. */
async function changeSigningKey(
  db: Database,
  input: { readonly actor: Actor; readonly product: string; readonly key: Buffer | null },
): Promise<Product> {
  const { actor, key } = input;
  const { id, name } = await findProduct(db, input.product);
  return db.transaction(async (tx) => {
    await lockCatalog(tx, id);
    const before = await findProduct(tx, name);
    const [was, is] = [publicKeyText(before.signingPublicKey), publicKeyText(key)];
    if (was === is) return toProduct(before);
    await tx.update(products).set({ signingPublicKey: key }).where(eq(products.id, id));
    await recordAudit(tx, {
      ...{ actor, action: "product.update", subjectId: name },
      ...{ before: { signingPublicKey: was }, after: { signingPublicKey: is } },
    });
    return toProduct({ ...before, signingPublicKey: key });
  });
}

/** Base64, as it is shown. */
function publicKeyText(key: Buffer | null): string | null {
  return key?.toString("base64") ?? null;
}
