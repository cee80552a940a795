import { and, eq } from "drizzle-orm";
import { type AttemptState, type Database, schema, TERMINAL_ATTEMPT_STATES } from "../../src/index.ts";
import { newPublicId } from "../../src/public-id.ts";

/**
 * Writes an attempt as the check would: the upgrade where there is none yet, and its next attempt in the given state.
 * Under another rollout than its firmware's own, it is a step.
 */
export async function anAttempt(
  db: Database,
  input: { deviceId: string; firmwareId: string; rolloutId?: string; state: AttemptState },
): Promise<{ attemptId: number; upgradeId: string }> {
  const { devices, firmware, rollouts, upgradeAttempts, upgrades } = schema;
  const [found] = await db
    .select({ deviceId: devices.id, firmwareId: firmware.id, rolloutId: rollouts.id })
    .from(devices)
    .innerJoin(firmware, eq(firmware.publicId, input.firmwareId))
    .innerJoin(
      rollouts,
      input.rolloutId === undefined ? eq(rollouts.firmwareId, firmware.id) : eq(rollouts.publicId, input.rolloutId),
    )
    .where(eq(devices.publicId, input.deviceId));
  if (found === undefined) throw new Error("An attempt needs a device, and a firmware that has a rollout.");
  await db
    .insert(upgrades)
    .values({ publicId: newPublicId(), ...found })
    .onConflictDoNothing();
  const [upgrade] = await db
    .select()
    .from(upgrades)
    .where(and(eq(upgrades.deviceId, found.deviceId), eq(upgrades.firmwareId, found.firmwareId)));
  if (upgrade === undefined) throw new Error("The upgrade was not inserted.");
  const n = 1 + (await db.$count(upgradeAttempts, eq(upgradeAttempts.upgradeId, upgrade.id)));
  const closedAt = (TERMINAL_ATTEMPT_STATES as readonly string[]).includes(input.state) ? new Date() : null;
  const [attempt] = await db
    .insert(upgradeAttempts)
    .values({ ...found, upgradeId: upgrade.id, n, state: input.state, closedAt })
    .returning();
  if (attempt === undefined) throw new Error("The attempt was not inserted.");
  return { attemptId: attempt.id, upgradeId: upgrade.publicId };
}

/** Moves an attempt without the rules of the transition table. */
export async function setAttemptState(db: Database, input: { attemptId: number; state: AttemptState }): Promise<void> {
  const { upgradeAttempts } = schema;
  const closedAt = (TERMINAL_ATTEMPT_STATES as readonly string[]).includes(input.state) ? new Date() : null;
  await db.update(upgradeAttempts).set({ state: input.state, closedAt }).where(eq(upgradeAttempts.id, input.attemptId));
}
