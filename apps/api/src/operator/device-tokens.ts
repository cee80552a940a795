import { REVOCABLE_TOKENS, revokeDeviceTokens, rotateDeviceToken } from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { publicIdSchema } from "../http/schemas.ts";
import { deviceSchema, deviceView, deviceWithTokenSchema } from "./device-view.ts";

const params = z.strictObject({ deviceId: publicIdSchema });

/** A device's token: its rotation and its end. */
export const deviceTokenRoutes: readonly RouteDefinition[] = [
  defineRoute({
    method: "POST",
    path: "/v1/devices/{deviceId}/token",
    operationId: "rotateDeviceToken",
    summary: "Give a device a new token; the old one works a while longer",
    description:
      "At most two tokens work at a time. Where the answer was lost, revoke the `newest` one, and rotate again. A device " +
      "that asked through a gateway needs its new token from now on.",
    tag: "Fleet",
    auth: "operator",
    request: {
      params,
      body: {
        kind: "json",
        optional: true,
        schema: z
          .strictObject({
            overlapSeconds: z
              .int()
              .min(0)
              .max(7_776_000)
              .optional()
              .meta({
                description: "How long the old token works as well. 0: not at all.",
                override: { default: 86_400 },
              }),
          })
          .meta({ id: "TokenRotation" }),
      },
    },
    responses: { 200: { description: "The device and its new token", body: deviceWithTokenSchema } },
    problems: ["NOT_FOUND", "INVALID_STATE"],
    async handler({ actor, params, body }, { db }) {
      const { device, token } = await rotateDeviceToken(db, { actor, ...params, ...body });
      return { status: 200, body: { device: deviceView(device), token } };
    },
  }),
  defineRoute({
    method: "DELETE",
    path: "/v1/devices/{deviceId}/token",
    operationId: "revokeDeviceTokens",
    summary: "Revoke a device's tokens, from the next request on",
    description:
      "`all` also leaves the device to the gateways of its product: block it to keep it out. `previous` ends the overlap of " +
      "a rotation; `newest` takes the rotation back.",
    tag: "Fleet",
    auth: "operator",
    request: { params, query: z.strictObject({ which: z.enum(REVOCABLE_TOKENS) }) },
    responses: { 200: { description: "The device as it is now", body: deviceSchema } },
    problems: ["NOT_FOUND", "INVALID_STATE"],
    async handler({ actor, params, query }, { db }) {
      return { status: 200, body: deviceView(await revokeDeviceTokens(db, { actor, ...params, ...query })) };
    },
  }),
];
