import { createGatewayToken, type GatewayToken, listGatewayTokens, revokeGatewayToken } from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { plainText, productNameSchema, publicIdSchema, timeSchema } from "../http/schemas.ts";
import { channelSchema, secretSchema } from "./fields.ts";
import { pageBody, pageFields, pageSchema } from "./page.ts";

const params = z.strictObject({ product: productNameSchema });

const gatewayTokenSchema = z
  .object({
    id: publicIdSchema,
    product: productNameSchema,
    channel: channelSchema.meta({ description: "The channel of the devices that it registers." }),
    name: z.string(),
    createdAt: timeSchema,
    revokedAt: timeSchema.nullable().meta({ description: "null while the token works." }),
  })
  .meta({ id: "GatewayToken" });

/** Gateway tokens: devices that register themselves, and those without a token of their own. */
export const gatewayTokenRoutes: readonly RouteDefinition[] = [
  defineRoute({
    method: "POST",
    path: "/v1/products/{product}/gateway-tokens",
    operationId: "createGatewayToken",
    summary: "Create a gateway token",
    description:
      "For the devices of a product that share one token. Each names its serial in the header `OTA-Device-Serial`: an " +
      "unknown one is registered at its first check. Whoever has the token can speak for every device of the product that " +
      "has none of its own.",
    tag: "Gateway tokens",
    auth: "operator",
    request: {
      params,
      body: {
        kind: "json",
        schema: z
          .strictObject({
            name: plainText(128).min(1).meta({ description: "What uses it.", example: "assembly line 2" }),
            channel: channelSchema.optional().meta({
              description: "The channel of the devices that it registers.",
              override: { default: "stable" },
            }),
          })
          .meta({ id: "NewGatewayToken" }),
      },
    },
    responses: {
      201: { description: "Created", body: z.object({ gatewayToken: gatewayTokenSchema, token: secretSchema }) },
    },
    problems: ["NOT_FOUND"],
    async handler({ actor, params, body }, { db }) {
      const { gatewayToken, token } = await createGatewayToken(db, { actor, ...params, ...body });
      return { status: 201, body: { gatewayToken: gatewayTokenView(gatewayToken), token } };
    },
  }),
  defineRoute({
    method: "GET",
    path: "/v1/products/{product}/gateway-tokens",
    operationId: "listGatewayTokens",
    summary: "List a product's gateway tokens, revoked ones too",
    tag: "Gateway tokens",
    auth: "operator",
    request: { params, query: z.strictObject(pageFields) },
    responses: { 200: { description: "A page of tokens", body: pageSchema(gatewayTokenSchema) } },
    problems: ["NOT_FOUND", "INVALID_CURSOR"],
    async handler({ params, query }, { db }) {
      return { status: 200, body: pageBody(await listGatewayTokens(db, { ...params, ...query }), gatewayTokenView) };
    },
  }),
  defineRoute({
    method: "POST",
    path: "/v1/gateway-tokens/{gatewayTokenId}/revoke",
    operationId: "revokeGatewayToken",
    summary: "Revoke a gateway token, from the next request on",
    description: "The devices that it has registered stay.",
    tag: "Gateway tokens",
    auth: "operator",
    request: { params: z.strictObject({ gatewayTokenId: publicIdSchema }) },
    responses: { 200: { description: "The revoked token", body: gatewayTokenSchema } },
    problems: ["NOT_FOUND"],
    async handler({ actor, params }, { db }) {
      return { status: 200, body: gatewayTokenView(await revokeGatewayToken(db, { actor, ...params })) };
    },
  }),
];

function gatewayTokenView(token: GatewayToken): z.input<typeof gatewayTokenSchema> {
  return {
    ...token,
    createdAt: token.createdAt.toISOString(),
    revokedAt: token.revokedAt?.toISOString() ?? null,
  };
}
