import { randomBytes, randomUUID } from "node:crypto";
import { canonicalVersion, type Database, schema } from "@ota/domain";
import { artifactOf } from "../support/fleet.ts";
import type { Case } from "./cases/case.ts";
import { rolloutOf } from "./facts-of-case.ts";

/** Writes what a case describes into the database, as a product of its own. Returns what its device is looked up by. */
export async function insertCase(db: Database, given: Case): Promise<{ readonly tokenHash: Buffer }> {
  const { device = {}, scheme = "semver" } = given;
  const [product] = await db
    .insert(schema.products)
    .values({
      ...{ name: `p-${randomUUID()}`, versionScheme: scheme, confirmBy: "report", pollIntervalSeconds: 300 },
      ...given.product,
    })
    .returning();
  const productId = product?.id as bigint;

  const firmwareIds = new Map<string, bigint>();
  const rolloutIds = new Map<string, bigint>();
  const allowing: bigint[] = [];
  for (const one of given.firmware) {
    const { version } = one;
    const [row] = await db
      .insert(schema.firmware)
      .values({
        ...{ publicId: randomUUID(), productId, version, ...artifactOf(version) },
        canonicalVersion: canonicalVersion(scheme, version) as string,
        state: one.state ?? "released",
        hardwareRevisions: [...(one.hardware ?? [])],
        requiresVersion: one.requires ?? null,
      })
      .returning();
    const firmwareId = row?.id as bigint;
    firmwareIds.set(version, firmwareId);
    for (const rollout of one.rollouts ?? [{}]) {
      const [inserted] = await db
        .insert(schema.rollouts)
        .values({ publicId: randomUUID(), firmwareId, ...rolloutOf(rollout, new Date()) })
        .returning();
      const rolloutId = inserted?.id as bigint;
      if (!rolloutIds.has(version)) rolloutIds.set(version, rolloutId);
      if (rollout.allowsDevice) allowing.push(rolloutId);
      if (rollout.taken === undefined) continue;
      const { thresholdReached, ...taken } = rollout.taken;
      await db.insert(schema.rolloutCounters).values({
        ...{ rolloutId, productId: inserted?.state === "running" ? productId : null, revision: 1n, ...taken },
        ...(thresholdReached ? { reached: "error_threshold" as const, reachedAt: new Date() } : {}),
      });
    }
  }

  const tokenHash = randomBytes(32);
  const [inserted] = await db
    .insert(schema.devices)
    .values({
      ...{ publicId: randomUUID(), productId, serial: randomUUID(), tokenHash },
      channel: device.channel ?? "stable",
      hardwareRevision: device.hardware ?? null,
      reportedVersion: device.runs ?? null,
      confirmedVersion: device.confirmed ?? null,
      blocked: device.blocked ?? false,
      groups: [...(device.groups ?? [])],
      attributes: device.attributes ?? {},
      timeZone: device.timeZone ?? null,
    })
    .returning();
  const deviceId = inserted?.id as bigint;
  for (const rolloutId of allowing) await db.insert(schema.rolloutDevices).values({ rolloutId, deviceId });

  for (const record of given.records ?? []) {
    const firmwareId = firmwareIds.get(record.firmware) as bigint;
    const rolloutId = rolloutIds.get(record.by ?? record.firmware) as bigint;
    const [upgrade] = await db
      .insert(schema.upgrades)
      .values({ publicId: randomUUID(), deviceId, firmwareId, rolloutId, attemptsForgiven: record.forgiven ?? 0 })
      .returning();
    await db.insert(schema.upgradeAttempts).values(
      record.attempts.map(({ state, cancelOutcome, closedMinutesAgo }, index) => ({
        ...{ upgradeId: upgrade?.id as bigint, deviceId, firmwareId, rolloutId, n: index + 1, state },
        cancelOutcome: cancelOutcome ?? null,
        closedAt: closedMinutesAgo === undefined ? null : new Date(Date.now() - closedMinutesAgo * 60_000),
      })),
    );
  }
  return { tokenHash };
}
