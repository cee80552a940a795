import { createOperatorKey, listOperatorKeys, type OperatorKey, revokeOperatorKey } from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { plainText, publicIdSchema, timeSchema } from "../http/schemas.ts";
import { secretSchema } from "./fields.ts";
import { pageBody, pageFields, pageSchema } from "./page.ts";

const nameSchema = plainText(128)
  .min(1)
  .meta({ description: "Whose it is, for the audit log.", example: "release pipeline" });

const operatorKeySchema = z
  .object({
    id: publicIdSchema,
    name: z.string(),
    createdAt: timeSchema,
    revokedAt: timeSchema.nullable().meta({ description: "null while the key works." }),
  })
  .meta({ id: "OperatorKey" });

/** Operator keys: who may use the routes of this folder. */
export const operatorKeyRoutes: readonly RouteDefinition[] = [
  defineRoute({
    method: "POST",
    path: "/v1/operator-keys",
    operationId: "createOperatorKey",
    summary: "Create an operator key",
    description: "Give every person and program one of its own: the audit log names it, and it can be revoked alone.",
    tag: "Operator keys",
    auth: "operator",
    request: { body: { kind: "json", schema: z.strictObject({ name: nameSchema }) } },
    responses: {
      201: { description: "Created", body: z.object({ operatorKey: operatorKeySchema, key: secretSchema }) },
    },
    problems: [],
    async handler({ actor, body }, { db }) {
      const { operatorKey, key } = await createOperatorKey(db, { actor, ...body });
      return { status: 201, body: { operatorKey: operatorKeyView(operatorKey), key } };
    },
  }),
  defineRoute({
    method: "GET",
    path: "/v1/operator-keys",
    operationId: "listOperatorKeys",
    summary: "List operator keys, revoked ones too",
    tag: "Operator keys",
    auth: "operator",
    request: { query: z.strictObject(pageFields) },
    responses: { 200: { description: "A page of keys", body: pageSchema(operatorKeySchema) } },
    problems: ["INVALID_CURSOR"],
    async handler({ query }, { db }) {
      return { status: 200, body: pageBody(await listOperatorKeys(db, query), operatorKeyView) };
    },
  }),
  defineRoute({
    method: "POST",
    path: "/v1/operator-keys/{operatorKeyId}/revoke",
    operationId: "revokeOperatorKey",
    summary: "Revoke an operator key, from the next request on",
    description: "The last key that works can't be revoked: nobody could make another one.",
    tag: "Operator keys",
    auth: "operator",
    request: { params: z.strictObject({ operatorKeyId: publicIdSchema }) },
    responses: { 200: { description: "The revoked key", body: operatorKeySchema } },
    problems: ["NOT_FOUND", "LAST_OPERATOR_KEY"],
    async handler({ actor, params }, { db }) {
      return { status: 200, body: operatorKeyView(await revokeOperatorKey(db, { actor, ...params })) };
    },
  }),
];

function operatorKeyView({ id, name, createdAt, revokedAt }: OperatorKey): z.input<typeof operatorKeySchema> {
  return { id, name, createdAt: createdAt.toISOString(), revokedAt: revokedAt?.toISOString() ?? null };
}
