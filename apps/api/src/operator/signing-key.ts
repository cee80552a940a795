import { removeSigningKey, setSigningKey } from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { plainText, productNameSchema } from "../http/schemas.ts";
import { productSchema, productView } from "./products.ts";

const params = z.strictObject({ product: productNameSchema });

const signingKeySchema = z
  .strictObject({
    publicKey: plainText(1024).min(1).meta({
      description: "An Ed25519 public key: PEM, as `openssl pkey -pubout` prints it, or the base64 of its 32 bytes.",
    }),
  })
  .meta({ id: "SigningKey" });

/** The public key by which a product's firmware is signed. */
export const signingKeyRoutes: readonly RouteDefinition[] = [
  defineRoute({
    method: "PUT",
    path: "/v1/products/{product}/signing-key",
    operationId: "setSigningKey",
    summary: "Set or rotate the key that firmware is signed by",
    description:
      "From now on only firmware that is signed with this key can be released. Drafts that are signed with another key " +
      "must be signed anew; what is released stays so.",
    tag: "Products",
    auth: "operator",
    request: { params, body: { kind: "json", schema: signingKeySchema } },
    responses: { 200: { description: "The product", body: productSchema } },
    problems: ["NOT_FOUND", "INVALID_FIELD"],
    async handler({ actor, params, body }, { db }) {
      return { status: 200, body: productView(await setSigningKey(db, { actor, ...params, ...body })) };
    },
  }),
  defineRoute({
    method: "DELETE",
    path: "/v1/products/{product}/signing-key",
    operationId: "removeSigningKey",
    summary: "Remove the key: unsigned firmware can be released",
    tag: "Products",
    auth: "operator",
    request: { params },
    responses: { 200: { description: "The product", body: productSchema } },
    problems: ["NOT_FOUND"],
    async handler({ actor, params }, { db }) {
      return { status: 200, body: productView(await removeSigningKey(db, { actor, ...params })) };
    },
  }),
];
