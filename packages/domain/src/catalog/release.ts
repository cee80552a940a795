import { and, eq, inArray, sql } from "drizzle-orm";
import { type Actor, recordAudit } from "../audit.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { invalidField, requireChannel, requireInteger } from "../fields.ts";
import { newPublicId } from "../public-id.ts";
import { OPEN_ROLLOUT_STATES, stopRolloutsOf } from "../rollouts/rollout-states.ts";
import { changedNames, DEFAULT_TERMS, PRIORITY } from "../rollouts/rollout-terms.ts";
import { firmware, type products, rollouts } from "../schema/index.ts";
import { type Firmware, getFirmware, lockFirmware } from "./firmware.ts";
import { findProduct, incrementCatalogRevision } from "./products.ts";
import { termsOf } from "./rollouts.ts";

/** The channel of devices and releases that name none. */
export const DEFAULT_CHANNEL = "stable";

/** What a rollout is started with. */
interface Offer {
  readonly channel: string;
  readonly priority: number;
  readonly allowDowngrade: boolean;
}

/**
 * Releases a firmware: from then on rollouts can offer it. With `startRollout` it is offered to all devices of a channel at
 * once; releasing it again for another channel offers it there too. Asking again for what is so already changes nothing, so
 * that a request whose answer was lost can be repeated.
 * Throws NOT_FOUND, INVALID_FIELD, INVALID_STATE where it is withdrawn, SIGNATURE_REQUIRED where it is not signed with the
 * key that the product has, or ALREADY_EXISTS where the channel is offered it on other terms.
 */
export async function releaseFirmware(
  db: Database,
  input: {
    readonly actor: Actor;
    readonly firmwareId: string;
    /** Whether a running rollout to 100 % of the channel's devices is started. @default false */
    readonly startRollout?: boolean | undefined;
    /** Only with a rollout, as the two below. @default "stable" */
    readonly channel?: string | undefined;
    /** -1000 to 1000; the greatest is tried first. @default 0 */
    readonly priority?: number | undefined;
    /** Whether devices that run a newer version are offered it too. @default false */
    readonly allowDowngrade?: boolean | undefined;
  },
): Promise<Firmware> {
  const offer = requireOffer(input);
  return db.transaction(async (tx) => {
    const { firmware: row, product } = await lockFirmware(tx, input.firmwareId);
    if (row.state === "withdrawn") {
      throw new OtaError("INVALID_STATE", "A withdrawn firmware cannot be released. Register it under a new version.", {
        details: { state: row.state },
      });
    }
    const started = offer !== undefined && !(await isOffered(tx, { firmwareRowId: row.id, offer }));
    if (row.state === "released" && !started) return getFirmware(tx, input);

    if (row.state === "draft") {
      requireSigned(row, await findProduct(tx, product));
      await tx.update(firmware).set({ state: "released", releasedAt: sql`now()` }).where(eq(firmware.id, row.id));
    }
    const rolloutId = newPublicId();
    if (started) {
      await tx
        .insert(rollouts)
        .values({ publicId: rolloutId, firmwareId: row.id, state: "running", startedAt: sql`now()`, ...offer });
    }
    await incrementCatalogRevision(tx, row.productId);
    await recordAudit(tx, {
      actor: input.actor,
      action: "firmware.release",
      subjectId: row.publicId,
      before: { state: row.state },
      after: { state: "released", version: row.version, ...(started ? { rolloutId, ...offer } : {}) },
    });
    return getFirmware(tx, input);
  });
}

/**
 * Withdraws a released firmware: its rollouts stop, and from the commit on no check offers it. Withdrawing it again
 * changes nothing.
 *
 * Open attempts are left to each device's next check, which ends them by the table of transitions: one whose device is
 * past the download may finish. Ending them here would lock a row for every device of the fleet in one transaction, and
 * in an order other than the checks'. A download that has not finished stops at once all the same, since the artifact is
 * handed out no more.
 *
 * Throws NOT_FOUND, or INVALID_STATE where it was never released.
 */
export async function withdrawFirmware(
  db: Database,
  input: { readonly actor: Actor; readonly firmwareId: string },
): Promise<Firmware> {
  return db.transaction(async (tx) => {
    const { firmware: row } = await lockFirmware(tx, input.firmwareId);
    if (row.state === "withdrawn") return getFirmware(tx, input);
    if (row.state === "draft") {
      throw new OtaError("INVALID_STATE", "A draft is offered to nobody: there is nothing to withdraw.", {
        details: { state: row.state },
      });
    }
    await tx.update(firmware).set({ state: "withdrawn", withdrawnAt: sql`now()` }).where(eq(firmware.id, row.id));
    const stoppedRollouts = await stopRolloutsOf(tx, row.id);
    await incrementCatalogRevision(tx, row.productId);
    await recordAudit(tx, {
      actor: input.actor,
      action: "firmware.withdraw",
      subjectId: row.publicId,
      before: { state: row.state },
      after: { state: "withdrawn", version: row.version, stoppedRollouts },
    });
    return getFirmware(tx, input);
  });
}

/** The offer that is asked for; `undefined` where no rollout is wanted. */
function requireOffer(
  input: Partial<{ [Key in keyof Offer]: Offer[Key] | undefined }> & {
    readonly startRollout?: boolean | undefined;
  },
): Offer | undefined {
  const { startRollout = false, channel, priority, allowDowngrade } = input;
  if (!startRollout) {
    for (const [field, value] of Object.entries({ channel, priority, allowDowngrade })) {
      if (value !== undefined) invalidField(field, "left out unless startRollout is true, as it is the rollout's");
    }
    return undefined;
  }
  const offer = {
    channel: channel ?? DEFAULT_CHANNEL,
    priority: priority ?? 0,
    allowDowngrade: allowDowngrade ?? false,
  };
  requireChannel("channel", offer.channel);
  requireInteger("priority", offer.priority, PRIORITY);
  return offer;
}

/**
 * A product that has a key releases only what is signed with that very key. The signature was verified when it was added,
 * and what it covers never changes.
 */
function requireSigned(row: typeof firmware.$inferSelect, product: typeof products.$inferSelect): void {
  const key = product.signingPublicKey;
  if (key === null || row.signatureKey?.equals(key)) return;
  throw new OtaError(
    "SIGNATURE_REQUIRED",
    row.signatureKey === null
      ? "The product has a signing key, and this firmware is not signed. Add its signature first."
      : "This firmware is signed with a key that the product no longer has. Sign it with the present one first.",
    { details: { product: product.name, signingPublicKey: key.toString("base64") } },
  );
}

/**
 * Whether the channel is offered the firmware on just these terms. Throws ALREADY_EXISTS where it is on others, or a draft
 * of a rollout is there to be started.
 */
async function isOffered(
  tx: Database,
  wanted: { readonly firmwareRowId: bigint; readonly offer: Offer },
): Promise<boolean> {
  const { channel } = wanted.offer;
  const open = await tx
    .select()
    .from(rollouts)
    .where(
      and(
        eq(rollouts.firmwareId, wanted.firmwareRowId),
        eq(rollouts.channel, channel),
        inArray(rollouts.state, OPEN_ROLLOUT_STATES),
      ),
    );
  const terms = { ...DEFAULT_TERMS, ...wanted.offer };
  const [other] = open.filter((row) => row.state === "draft" || changedNames(termsOf(row), terms).length > 0);
  if (other === undefined) return open.length > 0;
  const { publicId: rolloutId, state, priority, allowDowngrade } = other;
  const instead = state === "draft" ? "Release without startRollout and start that one" : "Change that one";
  throw new OtaError(
    "ALREADY_EXISTS",
    `The channel "${channel}" has a rollout of this firmware on other terms. ${instead}, or stop it first.`,
    { details: { rolloutId, state, priority, allowDowngrade } },
  );
}
