import { ATTRIBUTE_MODES, recordAttributes } from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { attributeChangesSchema } from "../http/schemas.ts";

/** What a device says about itself. */
export const attributesRoute: RouteDefinition = defineRoute({
  method: "PUT",
  path: "/v1/attributes",
  operationId: "putAttributes",
  summary: "Tell the device's attributes",
  description:
    "At any time. Rollouts may be for devices with certain attributes. A check takes them as well, and leaves out names " +
    "beyond the 64 that a device may have; here that is an error.",
  tag: "Devices",
  auth: "device",
  refusable: true,
  request: {
    body: {
      kind: "json",
      schema: z
        .strictObject({
          attributes: attributeChangesSchema,
          mode: z
            .enum(ATTRIBUTE_MODES)
            .optional()
            .meta({
              description:
                "What becomes of attributes that are not named: with `merge` they stay, with `replace` they go.",
              override: { default: "merge" },
            }),
        })
        .meta({ id: "TellAttributes" }),
    },
  },
  responses: {
    200: {
      description: "All its attributes now",
      body: z.object({ attributes: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])) }),
    },
  },
  problems: ["NOT_FOUND", "INVALID_FIELD", "SERVICE_BUSY"],
  async handler({ credentials, body, note }, { db }) {
    const { deviceId, attributes } = await recordAttributes(db, { ...credentials, ...body });
    note({ deviceId });
    return { status: 200, body: { attributes } };
  },
});
