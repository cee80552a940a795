import { createCatalog } from "../../src/decide/catalog.ts";
import type { DecideInput, Decision } from "../../src/decide/decide-update.ts";
import type { UpgradeRecord } from "../../src/decide/facts.ts";
import type { Case, GivenRollout } from "./cases/case.ts";

export const NOW = new Date("2024-05-01T12:00:00Z");

/** The facts that a case describes, with ids in the order of its lists; the lists themselves in any order. */
export function factsOfCase(
  given: Case,
  inAnyOrder: <T>(list: readonly T[]) => readonly T[] = (list) => list,
): DecideInput {
  const { device = {}, product = {}, records = [] } = given;
  const firmware = given.firmware.map((one, index) => ({
    ...one,
    id: BigInt(index + 1),
    rollouts: one.rollouts ?? [{}],
  }));
  const rollouts = firmware
    .flatMap(({ id, rollouts }) => rollouts.map((rollout) => ({ given: rollout, firmwareId: id })))
    .map(({ given, firmwareId }, index) => ({
      ...{ given, firmwareId, id: BigInt(100 + index), publicId: `rollout-${index}`, revision: 1n },
      ...rolloutOf(given, NOW),
      counted: given.taken !== undefined,
    }));
  const idOf = (version: string) => firmware.find((one) => one.version === version)?.id as bigint;
  const rolloutIdOf = (version: string) =>
    rollouts.find(({ firmwareId }) => firmwareId === idOf(version))?.id as bigint;
  let attemptId = 0;

  return {
    device: {
      id: 1000n,
      channel: device.channel ?? "stable",
      hardwareRevision: device.hardware ?? null,
      reportedVersion: device.runs ?? null,
      confirmedVersion: device.confirmed ?? null,
      blocked: device.blocked ?? false,
      groups: device.groups ?? [],
      attributes: device.attributes ?? {},
      timeZone: device.timeZone ?? null,
      allowedBy: rollouts.flatMap(({ id, given }) => (given.allowsDevice ? [id] : [])),
    },
    history: {
      records: inAnyOrder(
        records.map(
          (record, index): UpgradeRecord => ({
            id: BigInt(index + 1),
            publicId: `upgrade-${index}`,
            firmwareId: idOf(record.firmware),
            attemptsForgiven: record.forgiven ?? 0,
            attempts: record.attempts.map(({ state, cancelOutcome, closedMinutesAgo }, attemptIndex) => ({
              id: ++attemptId,
              n: attemptIndex + 1,
              rolloutId: rolloutIdOf(record.by ?? record.firmware),
              state,
              cancelOutcome: cancelOutcome ?? null,
              closedAt: closedMinutesAgo === undefined ? null : new Date(NOW.getTime() - closedMinutesAgo * 60_000),
            })),
          }),
        ),
      ),
    },
    catalog: createCatalog({
      productId: 1n,
      revision: 1n,
      versionScheme: given.scheme ?? "semver",
      confirmBy: "report",
      timeZone: product.timeZone ?? "UTC",
      maxAttempts: product.maxAttempts ?? 3,
      backoffSeconds: product.backoffSeconds ?? 600,
      firmware: inAnyOrder(
        firmware
          .map(({ id, version, state, hardware, requires }) => ({
            ...{ id, publicId: `firmware-${id}`, version, state: state ?? "released" },
            ...{ hardwareRevisions: hardware ?? [], requiresVersion: requires ?? null },
            ...{ sizeBytes: 1, sha256: "", sha1: "", md5: "", signature: null, fileName: "", contentType: "" },
          }))
          .filter(({ state }) => state !== "draft"),
      ),
      rollouts: inAnyOrder(rollouts.filter(({ state }) => state !== "draft")),
    }),
    places: new Map(
      rollouts.flatMap(({ id, state, given: { taken } }) =>
        taken === undefined || state !== "running" ? [] : [[id, { thresholdReached: false, ...taken }] as const],
      ),
    ),
    now: NOW,
  };
}

/** A rollout with everything that a case leaves out. */
export function rolloutOf(given: GivenRollout, now: Date) {
  const { window } = given;
  const minuteOf = (inMinutes: number) => localMinute(new Date(now.getTime() + inMinutes * 60_000), window?.timeZone);
  return {
    state: given.state ?? "running",
    channel: given.channel ?? "stable",
    priority: given.priority ?? 0,
    percentageBasisPoints: given.percentageBasisPoints ?? 10_000,
    allowDowngrade: given.allowDowngrade ?? false,
    requiresConfirmation: false,
    groups: [...(given.groups ?? [])],
    attributeFilter: given.attributeFilter ?? null,
    hardwareRevisions: [...(given.hardware ?? [])],
    maxAttempts: given.maxAttempts ?? null,
    backoffSeconds: given.backoffSeconds ?? null,
    maxConcurrent: given.maxConcurrent ?? null,
    maxTotal: given.maxTotal ?? null,
    windowDays: window === undefined ? null : [1, 2, 3, 4, 5, 6, 7],
    windowFromMinute: window === undefined ? null : minuteOf(window.opensIn),
    windowToMinute: window === undefined ? null : minuteOf(window.closesIn),
  };
}

/** What the clocks of a zone show, in minutes after midnight. */
function localMinute(at: Date, timeZone = "UTC"): number {
  const [hour = 0, minute = 0] = at
    .toLocaleTimeString("en-GB", { timeZone, hour: "2-digit", minute: "2-digit" })
    .split(":")
    .map(Number);
  return hour * 60 + minute;
}

/** A decision in words, with the versions of what it is about: all candidates of an offer, best first. */
export function describeDecision(decision: Decision, { catalog }: Pick<DecideInput, "catalog">): string {
  const versionOf = (id: bigint) => catalog.firmwareById.get(id)?.version ?? "?";
  if (decision.outcome === "continue") return `continue ${versionOf(decision.live.record.firmwareId)}`;
  const { ends } = decision;
  const first = ends === undefined ? "" : `${ends.event} ${versionOf(ends.live.record.firmwareId)}, then `;
  if (decision.outcome === "offer") {
    return `${first}offer ${decision.candidates.map(({ firmware }) => firmware.version).join(" ")}`;
  }
  const { reason, stopping } = decision;
  return `${first}none ${reason}${stopping === undefined ? "" : `, stopping ${versionOf(stopping.record.firmwareId)}`}`;
}
