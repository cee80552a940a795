import { eq, sql } from "drizzle-orm";
import type { Database } from "../database.ts";
import { requireOneOf } from "../fields.ts";
import type { DeviceAttributes } from "../schema/devices.ts";
import { devices } from "../schema/index.ts";
import { type DeviceCredentials, holdsCredentials, refusalOf } from "./credentials.ts";
import { type AttributeChanges, changedAttributes, MAX_ATTRIBUTES, requireAttributes } from "./device-fields.ts";

/** What becomes of the attributes that a device does not name: they stay, or go. */
export const ATTRIBUTE_MODES = ["merge", "replace"] as const;
export type AttributeMode = (typeof ATTRIBUTE_MODES)[number];

/**
 * Takes in what a device says about itself, at any time, whether it was asked or not. Saying the same again writes
 * nothing. Attributes decide which rollouts a device belongs to: what is to be out of its hands is a group.
 *
 * @returns all its attributes then.
 * @throws OtaError `INVALID_FIELD`; `DEVICE_TOKEN_INVALID`, `GATEWAY_TOKEN_INVALID`, `GATEWAY_TOKEN_REFUSED`; `NOT_FOUND`
 * for a serial that no check through the gateway has registered yet.
 */
export async function recordAttributes(
  db: Database,
  input: DeviceCredentials & {
    /** `null` removes the attribute. */
    readonly attributes: AttributeChanges;
    /** @default "merge" */
    readonly mode?: AttributeMode | undefined;
    /** Whether it was asked to tell them all: then it is not asked again until its next success. @default false */
    readonly answersRequest?: boolean | undefined;
  },
): Promise<{ readonly deviceId: string; readonly attributes: DeviceAttributes }> {
  const { attributes: changes, mode = "merge", answersRequest = false, ...credentials } = input;
  requireOneOf("mode", mode, ATTRIBUTE_MODES);
  requireAttributes("attributes", changes);
  return db.transaction(async (tx) => {
    const [device] = await tx
      .select({ id: devices.id, publicId: devices.publicId, attributes: devices.attributes })
      .from(devices)
      .where(holdsCredentials(credentials))
      .for("no key update");
    if (device === undefined) throw await refusalOf(tx, credentials);
    const before = mode === "replace" ? {} : device.attributes;
    const attributes = changedAttributes("attributes", { attributes: before, changes });
    if (answersRequest || !hasSame(attributes, device.attributes)) {
      const told = answersRequest ? { attributesToldAt: sql`now()` } : {};
      await tx
        .update(devices)
        .set({ attributes, ...told })
        .where(eq(devices.id, device.id));
    }
    return { deviceId: device.publicId, attributes };
  });
}

/**
 * The changes among those given that are news; `undefined`: none is. New names are left out once there are too many: a
 * check is answered all the same.
 */
export function attributeNews(
  attributes: DeviceAttributes,
  changes: AttributeChanges | undefined,
): AttributeChanges | undefined {
  if (changes === undefined) return undefined;
  let room = MAX_ATTRIBUTES - Object.keys(attributes).length;
  const news = Object.entries(changes).filter(([name, value]) => {
    const before = ownValue(attributes, name);
    if (value === before) return false;
    if (before === null) room -= 1;
    return before !== null || room >= 0;
  });
  return news.length === 0 ? undefined : Object.fromEntries(news);
}

function hasSame(one: DeviceAttributes, other: DeviceAttributes): boolean {
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length && names.every((name) => ownValue(one, name) === ownValue(other, name))
  );
}

/** An own one: a device may well have an attribute by a name that every object has something under. */
function ownValue(attributes: DeviceAttributes, name: string) {
  return Object.hasOwn(attributes, name) ? (attributes[name] ?? null) : null;
}
