import { and, desc, eq, lt, sql } from "drizzle-orm";
import type { PgUpdateSetSource } from "drizzle-orm/pg-core";
import { type Actor, recordAudit } from "../audit.ts";
import { findFirmware } from "../catalog/firmware.ts";
import { findProduct, incrementCatalogRevision, lockCatalog } from "../catalog/products.ts";
import {
  type Rollout,
  type RolloutRow,
  type RolloutTerms,
  selectRollouts,
  termsOf,
  toRollout,
} from "../catalog/rollouts.ts";
import type { Database } from "../database.ts";
import { OtaError } from "../errors.ts";
import { requireOneOf } from "../fields.ts";
import { type Page, type PageRequest, pageOf, pageWindow } from "../pages.ts";
import { isPublicId, newPublicId } from "../public-id.ts";
import type { AuditFacts } from "../schema/audit-log.ts";
import { firmware, rollouts } from "../schema/index.ts";
import { ROLLOUT_STATES, type RolloutState } from "../vocabulary.ts";
import { alignCounters, makeCounters } from "./counters.ts";
import {
  changedNames,
  changedTerms,
  columnsOf,
  DEFAULT_TERMS,
  type GivenTerms,
  needsCounters,
} from "./rollout-terms.ts";

/** What may change while devices are being offered the firmware: whom it addresses stays, or grows. */
const CHANGEABLE_WHILE_RUNNING: readonly (keyof RolloutTerms)[] = [
  "percentageBasisPoints",
  "maxConcurrent",
  "maxTotal",
  "successThreshold",
  "errorThreshold",
];

/**
 * Makes a rollout as a draft: it offers nothing until it is started. What is left out is as in {@link DEFAULT_TERMS}.
 * Throws NOT_FOUND on the firmware, INVALID_FIELD, or INVALID_STATE where the firmware is withdrawn.
 */
export async function createRollout(
  db: Database,
  input: GivenTerms & { readonly actor: Actor; readonly firmwareId: string },
): Promise<Rollout> {
  const terms = changedTerms(DEFAULT_TERMS, input);
  return db.transaction(async (tx) => {
    const { firmware: target } = await findFirmware(tx, input.firmwareId);
    await lockCatalog(tx, target.productId);
    const { firmware: locked } = await findFirmware(tx, input.firmwareId);
    if (locked.state === "withdrawn") {
      throw new OtaError("INVALID_STATE", "A withdrawn firmware is offered to nobody.", {
        details: { state: locked.state },
      });
    }
    const publicId = newPublicId();
    const [row] = await tx
      .insert(rollouts)
      .values({ publicId, firmwareId: locked.id, state: "draft", ...columnsOf(terms) })
      .returning();
    if (row !== undefined && needsCounters(terms)) await makeCounters(tx, row);
    await recordAudit(tx, {
      actor: input.actor,
      action: "rollout.create",
      subjectId: publicId,
      after: { firmwareId: locked.publicId, version: locked.version, ...factsOf(terms) },
    });
    return getRollout(tx, { rolloutId: publicId });
  });
}

/**
 * Changes the terms of a rollout; what is left out stays. Anything may change in a draft and while it is paused. While it
 * runs its percentage may grow, and caps and thresholds may change. New phases begin with the first one. Giving only
 * values that are so already changes nothing.
 *
 * Throws NOT_FOUND or INVALID_FIELD; INVALID_STATE where it is over, where it runs and something else is to change, or
 * where it was started without anything that is counted and is to have the first cap, threshold or phase: nobody has
 * counted from the start.
 */
export async function updateRollout(
  db: Database,
  input: GivenTerms & { readonly actor: Actor; readonly rolloutId: string },
): Promise<Rollout> {
  return db.transaction(async (tx) => {
    const found = await lockRollout(tx, input.rolloutId);
    const { rollout, counters } = found;
    const before = termsOf(rollout);
    const after = changedTerms(before, input);
    const changed = changedNames(before, after);
    if (changed.length === 0) return toRollout(found);
    requireChangeable(rollout.state, { before, after, changed });
    if (needsCounters(after) && counters === null) {
      if (rollout.startedAt !== null || rollout.state !== "draft") {
        throw new OtaError(
          "INVALID_STATE",
          "It was started without a cap, a threshold or phases, so that nothing was counted. Finish it, which lets devices " +
            "that have begun go on, and make another.",
          { details: { state: rollout.state } },
        );
      }
      await makeCounters(tx, rollout);
    }
    const phaseIndex = changed.includes("phases") ? { phaseIndex: 0 } : {};
    await writeRollout(tx, { found, change: { ...columnsOf(after), ...phaseIndex } });
    await recordAudit(tx, {
      actor: input.actor,
      action: "rollout.update",
      subjectId: rollout.publicId,
      before: factsOf(before, changed),
      after: factsOf(after, changed),
    });
    return getRollout(tx, input);
  });
}

/** Reads a rollout. Throws NOT_FOUND. */
export async function getRollout(db: Database, { rolloutId }: { readonly rolloutId: string }): Promise<Rollout> {
  return toRollout(await findRollout(db, rolloutId));
}

/** Lists rollouts, newest first: all, or those of a product, a firmware or a state. Throws NOT_FOUND on an unknown one. */
export async function listRollouts(
  db: Database,
  input: PageRequest & {
    readonly product?: string | undefined;
    readonly firmwareId?: string | undefined;
    readonly state?: RolloutState | undefined;
  },
): Promise<Page<Rollout>> {
  const window = pageWindow("rollouts", input);
  const { state } = input;
  if (state !== undefined) requireOneOf("state", state, ROLLOUT_STATES);
  const product = input.product === undefined ? undefined : await findProduct(db, input.product);
  const target = input.firmwareId === undefined ? undefined : (await findFirmware(db, input.firmwareId)).firmware;
  const rows = await selectRollouts(db)
    .where(
      and(
        lt(rollouts.id, window.beforeId),
        product === undefined ? undefined : eq(firmware.productId, product.id),
        target === undefined ? undefined : eq(rollouts.firmwareId, target.id),
        state === undefined ? undefined : eq(rollouts.state, state),
      ),
    )
    .orderBy(desc(rollouts.id))
    .limit(window.limit + 1);
  return pageOf(window, { rows, idOf: ({ rollout }) => rollout.id, toItem: toRollout });
}

export interface LockedRollout extends RolloutRow {
  readonly productId: bigint;
}

/** A rollout's row. Throws NOT_FOUND. */
export async function findRollout(db: Database, rolloutId: string): Promise<RolloutRow> {
  const rows = isPublicId(rolloutId) ? await selectRollouts(db).where(eq(rollouts.publicId, rolloutId)) : [];
  if (rows[0] === undefined) throw new OtaError("NOT_FOUND", "There is no such rollout.");
  return rows[0];
}

/** Locks a rollout under its product: nobody changes either until the transaction ends. Throws NOT_FOUND. */
export async function lockRollout(tx: Database, rolloutId: string): Promise<LockedRollout> {
  const { rollout } = await findRollout(tx, rolloutId);
  const [target] = await tx
    .select({ productId: firmware.productId })
    .from(firmware)
    .where(eq(firmware.id, rollout.firmwareId));
  if (target === undefined) throw new Error(`Rollout ${rollout.id} is for a firmware that is gone.`);
  await lockCatalog(tx, target.productId);
  await tx.select({ id: rollouts.id }).from(rollouts).where(eq(rollouts.id, rollout.id)).for("no key update");
  return { ...(await findRollout(tx, rolloutId)), productId: target.productId };
}

/** Writes a change of a locked rollout: its revision, its counters' and the catalog's grow with it. */
export async function writeRollout(
  tx: Database,
  context: { readonly found: LockedRollout; readonly change: PgUpdateSetSource<typeof rollouts> },
): Promise<void> {
  const { found, change } = context;
  await tx
    .update(rollouts)
    .set({ ...change, revision: sql`${rollouts.revision} + 1`, updatedAt: sql`now()` })
    .where(eq(rollouts.id, found.rollout.id));
  await alignCounters(tx, [found.rollout.id]);
  await incrementCatalogRevision(tx, found.productId);
}

function requireChangeable(
  state: RolloutState,
  terms: {
    readonly before: RolloutTerms;
    readonly after: RolloutTerms;
    readonly changed: readonly (keyof RolloutTerms)[];
  },
): void {
  const { before, after, changed } = terms;
  if (state === "draft" || state === "paused") return;
  const refuse = (message: string): never => {
    throw new OtaError("INVALID_STATE", message, { details: { state } });
  };
  if (state !== "running") refuse(`A rollout that is ${state} is over. Make another.`);
  const fixed = changed.filter((name) => !CHANGEABLE_WHILE_RUNNING.includes(name));
  if (fixed.length > 0) refuse(`${fixed.join(", ")} cannot change while the rollout runs. Pause it first.`);
  if (after.percentageBasisPoints < before.percentageBasisPoints) {
    refuse("The percentage only grows while the rollout runs. Pause it first.");
  }
}

function factsOf(terms: RolloutTerms, names = changedNames(DEFAULT_TERMS, terms)): AuditFacts {
  return Object.fromEntries(names.map((name) => [name, terms[name] as AuditFacts[string]]));
}
