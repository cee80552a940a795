import { type Device, getDevice, listDevices, registerDevice, rotateDeviceToken, updateDevice } from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { productNameSchema, publicIdSchema, serialSchema, timeSchema } from "../http/schemas.ts";
import { channelSchema, hardwareRevisionSchema, secretSchema } from "./fields.ts";
import { pageBody, pageFields, pageSchema } from "./page.ts";

const params = z.strictObject({ deviceId: publicIdSchema });

const deviceSchema = z
  .object({
    id: publicIdSchema,
    product: productNameSchema,
    serial: z.string(),
    channel: channelSchema,
    hardwareRevision: z.string().nullable(),
    reportedVersion: z.string().nullable().meta({ description: "What the device said last that it runs." }),
    confirmedVersion: z.string().nullable().meta({ description: "The last install that was confirmed." }),
    blocked: z.boolean(),
    lastSeenAt: timeSchema.nullable().meta({ description: "Its last check, written within ten seconds." }),
    createdAt: timeSchema,
  })
  .meta({ id: "Device" });

const deviceWithTokenSchema = z.object({ device: deviceSchema, token: secretSchema }).meta({ id: "DeviceWithToken" });

/** Devices: registration with a token, its rotation, changes and lists. */
export const deviceRoutes: readonly RouteDefinition[] = [
  defineRoute({
    method: "POST",
    path: "/v1/products/{product}/devices",
    operationId: "registerDevice",
    summary: "Register a device and make its token",
    tag: "Fleet",
    auth: "operator",
    request: {
      params: z.strictObject({ product: productNameSchema }),
      body: {
        kind: "json",
        schema: z
          .strictObject({
            serial: serialSchema.meta({ example: "hub-0001" }),
            channel: channelSchema.optional().meta({ override: { default: "stable" } }),
            hardwareRevision: hardwareRevisionSchema.optional(),
          })
          .meta({ id: "NewDevice" }),
      },
    },
    responses: {
      201: { description: "Registered", body: deviceWithTokenSchema, headers: { Location: "Where the device is." } },
    },
    problems: ["NOT_FOUND", "ALREADY_EXISTS"],
    async handler({ actor, params, body }, { db }) {
      const { device, token } = await registerDevice(db, { actor, ...params, ...body });
      return {
        status: 201,
        headers: { Location: `/v1/devices/${device.id}` },
        body: { device: deviceView(device), token },
      };
    },
  }),
  defineRoute({
    method: "GET",
    path: "/v1/devices",
    operationId: "listDevices",
    summary: "List devices, newest first",
    tag: "Fleet",
    auth: "operator",
    request: {
      query: z.strictObject({
        product: productNameSchema.optional(),
        serial: serialSchema.optional().meta({ description: "Exactly this serial." }),
        ...pageFields,
      }),
    },
    responses: { 200: { description: "A page of devices", body: pageSchema(deviceSchema) } },
    problems: ["NOT_FOUND", "INVALID_CURSOR"],
    async handler({ query }, { db }) {
      return { status: 200, body: pageBody(await listDevices(db, query), deviceView) };
    },
  }),
  defineRoute({
    method: "GET",
    path: "/v1/devices/{deviceId}",
    operationId: "getDevice",
    summary: "Get a device",
    tag: "Fleet",
    auth: "operator",
    request: { params },
    responses: { 200: { description: "The device", body: deviceSchema } },
    problems: ["NOT_FOUND"],
    async handler({ params }, { db }) {
      return { status: 200, body: deviceView(await getDevice(db, params)) };
    },
  }),
  defineRoute({
    method: "PATCH",
    path: "/v1/devices/{deviceId}",
    operationId: "updateDevice",
    summary: "Change a device's channel or hardware revision, block or unblock it",
    description: "What is absent stays as it is. A blocked device is offered nothing from its next check on.",
    tag: "Fleet",
    auth: "operator",
    request: {
      params,
      body: {
        kind: "json",
        schema: z
          .strictObject({
            channel: channelSchema.optional(),
            hardwareRevision: hardwareRevisionSchema.nullable().optional().meta({ description: "null: not known." }),
            blocked: z.boolean().optional(),
          })
          .refine((changes) => Object.keys(changes).length > 0, "names nothing to change")
          .meta({ id: "DeviceChanges" }),
      },
    },
    responses: { 200: { description: "The device as it is now", body: deviceSchema } },
    problems: ["NOT_FOUND"],
    async handler({ actor, params, body }, { db }) {
      return { status: 200, body: deviceView(await updateDevice(db, { actor, ...params, ...body })) };
    },
  }),
  defineRoute({
    method: "POST",
    path: "/v1/devices/{deviceId}/token",
    operationId: "rotateDeviceToken",
    summary: "Give a device a new token; the old one stops working at once",
    tag: "Fleet",
    auth: "operator",
    request: { params },
    responses: { 200: { description: "The device and its new token", body: deviceWithTokenSchema } },
    problems: ["NOT_FOUND"],
    async handler({ actor, params }, { db }) {
      const { device, token } = await rotateDeviceToken(db, { actor, ...params });
      return { status: 200, body: { device: deviceView(device), token } };
    },
  }),
];

function deviceView(device: Device): z.input<typeof deviceSchema> {
  const { id, product, serial, channel, hardwareRevision, reportedVersion, confirmedVersion, blocked } = device;
  return {
    ...{ id, product, serial, channel, hardwareRevision, reportedVersion, confirmedVersion, blocked },
    lastSeenAt: device.lastSeenAt?.toISOString() ?? null,
    createdAt: device.createdAt.toISOString(),
  };
}
