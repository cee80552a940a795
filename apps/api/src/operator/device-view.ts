import { DEVICE_ORIGINS, type Device, MAX_ATTRIBUTES, MAX_GROUPS } from "@ota/domain";
import { z } from "zod";
import { attributeValueSchema, plainText, productNameSchema, publicIdSchema, timeSchema } from "../http/schemas.ts";
import { channelSchema, hardwareRevisionSchema, secretSchema } from "./fields.ts";

/** A group's name. Without `;`, because lists of them are written with it in a table's cell. */
export const groupSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._:-]{0,62}$/,
    "1 to 63 of the characters A-Z a-z 0-9 . _ : -, the first one a letter or digit",
  );

export const groupsSchema = z
  .array(groupSchema)
  .max(MAX_GROUPS)
  .meta({ example: ["pilot"] });

export const timeZoneSchema = plainText(64).min(1).meta({
  description: "Where its maintenance windows are, by its IANA name; null: the product's.",
  example: "Europe/Berlin",
});

/** What an operator says of a new device beside its serial. */
export const newDeviceFields = {
  channel: channelSchema.optional().meta({ override: { default: "stable" } }),
  hardwareRevision: hardwareRevisionSchema.optional(),
  groups: groupsSchema.optional(),
  attributes: z
    .record(plainText(128).min(1), attributeValueSchema)
    .optional()
    .meta({ description: `At most ${MAX_ATTRIBUTES}, by name.`, example: { modem: "4.2.1" } }),
  timeZone: timeZoneSchema.optional(),
};

export const deviceSchema = z
  .object({
    id: publicIdSchema,
    product: productNameSchema,
    serial: z.string(),
    channel: channelSchema,
    hardwareRevision: z.string().nullable(),
    groups: z.array(z.string()),
    attributes: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
    timeZone: z.string().nullable().meta({ description: "null: the product's." }),
    reportedVersion: z.string().nullable().meta({ description: "What the device said last that it runs." }),
    confirmedVersion: z.string().nullable().meta({ description: "The last install that was confirmed." }),
    blocked: z.boolean(),
    blockedReason: z.string().nullable(),
    registeredBy: z.enum(DEVICE_ORIGINS).meta({ description: "`gateway`: by itself, with a gateway token." }),
    hasToken: z.boolean().meta({ description: "Whether it has a token of its own; else it asks through a gateway." }),
    previousTokenValidUntil: timeSchema
      .nullable()
      .meta({ description: "Until when the token before the newest rotation works as well." }),
    lastSeenAt: timeSchema.nullable().meta({ description: "Its last check, written within ten seconds." }),
    createdAt: timeSchema,
  })
  .meta({ id: "Device" });

export const deviceWithTokenSchema = z
  .object({ device: deviceSchema, token: secretSchema })
  .meta({ id: "DeviceWithToken" });

export function deviceView(device: Device): z.input<typeof deviceSchema> {
  const { groups, previousTokenValidUntil, lastSeenAt, createdAt, ...facts } = device;
  return {
    ...facts,
    groups: [...groups],
    previousTokenValidUntil: previousTokenValidUntil?.toISOString() ?? null,
    lastSeenAt: lastSeenAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
  };
}
