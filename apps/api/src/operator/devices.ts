import { deleteDevice, getDevice, listDevices, registerDevice, updateDevice } from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import {
  attributeChangesSchema,
  plainText,
  productNameSchema,
  publicIdSchema,
  SOME_CHANGE,
  serialSchema,
} from "../http/schemas.ts";
import { deviceListRoute } from "./device-list.ts";
import { deviceTokenRoutes } from "./device-tokens.ts";
import {
  deviceSchema,
  deviceView,
  deviceWithTokenSchema,
  groupSchema,
  groupsSchema,
  newDeviceFields,
  timeZoneSchema,
} from "./device-view.ts";
import { channelSchema, hardwareRevisionSchema } from "./fields.ts";
import { pageBody, pageFields, pageSchema } from "./page.ts";

const params = z.strictObject({ deviceId: publicIdSchema });

/** A query's truth value. */
const flagSchema = z.enum(["true", "false"]).transform((text) => text === "true");

const sinceSchema = z.iso.datetime({ offset: true }).transform((text) => new Date(text));

const changesSchema = z
  .strictObject({
    channel: channelSchema.optional(),
    hardwareRevision: hardwareRevisionSchema.nullable().optional().meta({ description: "null: not known." }),
    groups: groupsSchema.optional().meta({ description: "Puts it into these groups and no other." }),
    addGroups: groupsSchema.optional(),
    removeGroups: groupsSchema.optional(),
    attributes: attributeChangesSchema.optional(),
    timeZone: timeZoneSchema.nullable().optional(),
    blocked: z.boolean().optional(),
    blockedReason: plainText(256).min(1).nullable().optional().meta({
      description: "For a device that is blocked, or is by this; unblocking clears it.",
      example: "stolen",
    }),
  })
  .refine((changes) => Object.keys(changes).length > 0, SOME_CHANGE)
  .meta({ id: "DeviceChanges" });

const listQuery = z.strictObject({
  product: productNameSchema.optional(),
  serial: serialSchema.optional().meta({ description: "Exactly this serial." }),
  serialPrefix: serialSchema.optional().meta({
    description: "How the serial begins; the list is then in the order of the serials. With `product`.",
  }),
  group: groupSchema.optional(),
  attribute: plainText(400)
    .regex(/^[^=]+=/, "a name, =, and a value")
    .transform((text) => ({ name: text.slice(0, text.indexOf("=")), value: text.slice(text.indexOf("=") + 1) }))
    .optional()
    .meta({
      description: "`name=value`: the attribute has this value, as text, or as the number or truth value written so.",
      example: "modem=4.2.1",
    }),
  channel: channelSchema.optional().meta({ description: "With `product`." }),
  version: plainText(256)
    .min(1)
    .optional()
    .meta({ description: "What the device runs as far as it is known, as it was reported. With `product`." }),
  blocked: flagSchema.optional(),
  notSeenSince: sinceSchema.optional().meta({
    ...{ format: "date-time", example: "2030-01-01T00:00:00Z" },
    description:
      "Last seen before that, or never. A page looks at 5 000 devices at most: it may hold few of them or none, and have " +
      "a `nextCursor` all the same. Not with `serialPrefix`.",
  }),
  seenSince: sinceSchema.optional().meta({
    ...{ format: "date-time", description: "Last seen then or later; as `notSeenSince`." },
  }),
  ...pageFields,
});

/** Devices: registration, changes, search and deletion. */
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
          .strictObject({ serial: serialSchema.meta({ example: "hub-0001" }), ...newDeviceFields })
          .meta({ id: "NewDevice" }),
      },
    },
    responses: {
      201: { description: "Registered", body: deviceWithTokenSchema, headers: { Location: "Where the device is." } },
    },
    problems: ["NOT_FOUND", "ALREADY_EXISTS", "INVALID_FIELD"],
    async handler({ actor, params, body }, { db }) {
      const { device, token } = await registerDevice(db, { actor, ...params, ...body });
      return {
        status: 201,
        headers: { Location: `/v1/devices/${device.id}` },
        body: { device: deviceView(device), token },
      };
    },
  }),
  deviceListRoute,
  defineRoute({
    method: "GET",
    path: "/v1/devices",
    operationId: "listDevices",
    summary: "List devices, newest first",
    description: "Those for which every filter that is given holds.",
    tag: "Fleet",
    auth: "operator",
    request: { query: listQuery },
    responses: { 200: { description: "A page of devices", body: pageSchema(deviceSchema) } },
    problems: ["NOT_FOUND", "INVALID_CURSOR", "INVALID_FIELD"],
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
    summary: "Change what is known of a device, block or unblock it",
    description: "What is absent stays as it is. A blocked device is offered nothing from its next check on.",
    tag: "Fleet",
    auth: "operator",
    request: { params, body: { kind: "json", schema: changesSchema } },
    responses: { 200: { description: "The device as it is now", body: deviceSchema } },
    problems: ["NOT_FOUND", "INVALID_FIELD"],
    async handler({ actor, params, body }, { db }) {
      return { status: 200, body: deviceView(await updateDevice(db, { actor, ...params, ...body })) };
    },
  }),
  defineRoute({
    method: "DELETE",
    path: "/v1/devices/{deviceId}",
    operationId: "deleteDevice",
    summary: "Delete a device with its upgrades and their history",
    description:
      "The audit log stays. A device that asks through a gateway registers itself again at its next check: block it instead, " +
      "or revoke the gateway's token.",
    tag: "Fleet",
    auth: "operator",
    request: {
      params,
      query: z.strictObject({
        endsAttempt: flagSchema.optional().meta({
          description: "Whether it may have an open attempt, which ends by this; otherwise that is refused.",
          override: { default: false },
        }),
      }),
    },
    responses: { 204: { description: "Deleted" } },
    problems: ["NOT_FOUND", "INVALID_STATE"],
    async handler({ actor, params, query }, { db, observeMove: observe }) {
      await deleteDevice(db, { actor, ...params, ...query, observe });
      return { status: 204 };
    },
  }),
  ...deviceTokenRoutes,
];
