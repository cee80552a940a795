import { eq } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import type { Database } from "../database.ts";
import { invalidField, requireChannel, requireText } from "../fields.ts";
import { devices } from "../schema/index.ts";
import { type Device, findDevice, toDevice } from "./device.ts";
import {
  type AttributeChanges,
  changedAttributes,
  requireAttributes,
  requireBlockedReason,
  requireGroups,
  requireTimeZone,
} from "./device-fields.ts";

/** What an operator changes of a device; what is left out stays. */
export interface DeviceChanges {
  readonly channel?: string | undefined;
  /** `null`: not known. */
  readonly hardwareRevision?: string | null | undefined;
  /** Puts it into these groups and no other. */
  readonly groups?: readonly string[] | undefined;
  /** Puts it into these groups as well; not together with `groups`. */
  readonly addGroups?: readonly string[] | undefined;
  /** Takes it out of these groups; not together with `groups`. */
  readonly removeGroups?: readonly string[] | undefined;
  readonly attributes?: AttributeChanges | undefined;
  /** `null`: the product's. */
  readonly timeZone?: string | null | undefined;
  readonly blocked?: boolean | undefined;
  /** For a device that is blocked, or is by this; unblocking clears it. */
  readonly blockedReason?: string | null | undefined;
}

/**
 * Changes what an operator knows about a device. Blocking counts from the device's next request on; an attempt that is
 * open then is not ended by it. Giving only values that are so already changes nothing.
 * Throws NOT_FOUND or INVALID_FIELD.
 */
export async function updateDevice(
  db: Database,
  input: DeviceChanges & { readonly actor: Actor; readonly deviceId: string },
): Promise<Device> {
  requireChanges(input);
  return db.transaction(async (tx) => {
    const { device, product } = await findDevice(tx, input.deviceId, { lock: "change" });
    const before = knownOf(device);
    const after = changedKnown(before, input);
    if (JSON.stringify(after) === JSON.stringify(before)) return toDevice({ device, product });
    await tx.update(devices).set(after).where(eq(devices.id, device.id));
    const subjectId = device.publicId;
    await recordAudit(tx, { actor: input.actor, action: "device.update", subjectId, before, after });
    return toDevice({ device: { ...device, ...after }, product });
  });
}

/** What an operator knows about a device, as the audit log has it. */
export function knownOf(device: typeof devices.$inferSelect) {
  const { channel, hardwareRevision, groups, attributes, timeZone, blocked, blockedReason } = device;
  return { channel, hardwareRevision, groups: groups.toSorted(), attributes, timeZone, blocked, blockedReason };
}

/** What operators may change of a device. */
export type KnownOfDevice = ReturnType<typeof knownOf>;

function requireChanges(changes: DeviceChanges): void {
  const { channel, hardwareRevision, groups, addGroups, removeGroups, attributes, timeZone } = changes;
  if (channel !== undefined) requireChannel("channel", channel);
  if (typeof hardwareRevision === "string") requireText("hardwareRevision", hardwareRevision);
  if (groups !== undefined) requireGroups("groups", groups);
  if (addGroups !== undefined) requireGroups("addGroups", addGroups);
  if (removeGroups !== undefined) requireGroups("removeGroups", removeGroups);
  if (groups !== undefined && (addGroups ?? removeGroups) !== undefined) {
    invalidField("groups", "given alone: it names all groups, with nothing to add or remove");
  }
  if (attributes !== undefined) requireAttributes("attributes", attributes);
  if (typeof timeZone === "string") requireTimeZone("timeZone", timeZone);
}

/** What is known after the changes. Throws INVALID_FIELD where they do not go together. */
export function changedKnown(before: KnownOfDevice, changes: DeviceChanges): KnownOfDevice {
  const { channel, hardwareRevision, attributes, timeZone, blocked = before.blocked } = changes;
  const reason = changes.blockedReason === undefined ? (blocked ? before.blockedReason : null) : changes.blockedReason;
  requireBlockedReason("blockedReason", { reason, blocked });
  return {
    channel: channel ?? before.channel,
    hardwareRevision: hardwareRevision === undefined ? before.hardwareRevision : hardwareRevision,
    groups: changedGroups(before.groups, changes),
    attributes:
      attributes === undefined
        ? before.attributes
        : changedAttributes("attributes", { attributes: before.attributes, changes: attributes }),
    timeZone: timeZone === undefined ? before.timeZone : timeZone,
    blocked,
    blockedReason: reason,
  };
}

function changedGroups(before: string[], { groups, addGroups = [], removeGroups = [] }: DeviceChanges): string[] {
  const removed = new Set(removeGroups);
  const after = [...new Set([...(groups ?? before), ...addGroups])].filter((group) => !removed.has(group)).sort();
  // What it had before may be more than what one request may name.
  requireGroups("groups", after);
  return after;
}
