import { randomUUID } from "node:crypto";
import {
  assignDeadlines,
  type BackgroundJob,
  cancelUpgrade,
  type Database,
  type DeviceFilter,
  deleteDevice,
  deleteOldAudit,
  deleteOldEvents,
  explainDevice,
  findArtifactForDevice,
  foldFigures,
  getDevice,
  getUpgrade,
  hashToken,
  listAllowedDevices,
  listAttemptEvents,
  listAudit,
  listDevices,
  listFirmware,
  listGatewayTokens,
  listRollouts,
  listUpgrades,
  productFigures,
  recordAttributes,
  resetUpgrade,
  rolloutFigures,
  settleRollouts,
  timeOutAttempts,
  type UpdateChecks,
  unreferencedArtifacts,
} from "@ota/domain";
import { ensureJob, runBatch } from "../../src/sweeper/background-job.ts";
import { artifactOf } from "../support/fleet.ts";
import { type KINDS, OPERATOR_ID, PRODUCT } from "./fleet-data.ts";
import { type SizedFleet, SYSTEM } from "./sized-fleet.ts";

/** Something that a device, an operator or the sweeper has done: what it sends is looked at, and timed. */
export interface Work {
  readonly name: string;
  readonly of: "device" | "operator" | "sweeper";
  run(on: { readonly db: Database; readonly checks: UpdateChecks; readonly fleet: SizedFleet }): Promise<unknown>;
}

/** All that the fleet's data are read and written by. */
export const WORKS: readonly Work[] = [
  ...deviceWorks(),
  ...Object.entries(operatorsWorks()).map(([name, run]): Work => ({ name, of: "operator", run })),
  ...[
    timeOutAttempts({ intervalMs: 1 }),
    assignDeadlines({ intervalMs: 1 }),
    deleteOldEvents({ intervalMs: 1, afterDays: 100 }),
    deleteOldAudit({ intervalMs: 1, afterDays: 1 }),
    settleRollouts({ intervalMs: 1 }),
    foldFigures({ intervalMs: 1 }),
  ].map((job): Work => ({ name: `a batch of ${job.name}`, of: "sweeper", run: ({ db }) => runOnce(db, job) })),
];

function deviceWorks(): readonly Work[] {
  const check = (name: string, kind: keyof typeof KINDS, version?: (fleet: SizedFleet) => string): Work => ({
    name,
    of: "device",
    run({ checks, fleet }) {
      return checks.checkForUpdate({ ...fleet.credentials(kind), reported: { version: version?.(fleet) } });
    },
  });
  const report = (
    name: string,
    kind: keyof typeof KINDS,
    given: { readonly state: "installing" | "failed" },
  ): Work => ({
    name,
    of: "device",
    async run({ checks, fleet }) {
      const { attemptId, ...credentials } = fleet.attempt(kind);
      await checks.recordReport({ ...credentials, attemptId, report: given });
    },
  });
  return [
    check("check: up to date", "upToDate", ({ newest }) => newest),
    {
      name: "check: up to date, by a device that has asked just now",
      of: "device",
      run: ({ checks, fleet }) =>
        checks.checkForUpdate({
          ...fleet.recurringCredentials("upToDate"),
          reported: { version: fleet.newest },
        }),
    },
    {
      name: "check: an attempt is open, by a device that has asked just now",
      of: "device",
      run: ({ checks, fleet }) => checks.checkForUpdate(fleet.recurringCredentials("open")),
    },
    check("check: an attempt is open", "open"),
    check("check: through a gateway", "throughGateway"),
    check("check: a first attempt is opened", "newToBeta"),
    check("check: a further attempt is opened", "failed"),
    check("check: the version is reached", "toReachVersion", ({ newest }) => newest),
    report("report: progress", "toBegin", { state: "installing" }),
    report("report: an end", "toSucceed", { state: "failed" }),
    {
      name: "check: a wrong token",
      of: "device",
      run: ({ checks }) => refused(checks.checkForUpdate({ tokenHash: hashToken(randomUUID()) })),
    },
    {
      name: "check: a new serial of a gateway",
      of: "device",
      run: ({ checks, fleet }) => checks.checkForUpdate({ tokenHash: fleet.gatewayHash, serial: randomUUID() }),
    },
    {
      name: "attributes",
      of: "device",
      run({ db, fleet }) {
        const attributes = { modem: String(Math.floor(Math.random() * 300)) };
        return recordAttributes(db, { ...fleet.credentials("ofGroups"), attributes });
      },
    },
    {
      name: "a download",
      of: "device",
      run: ({ db, fleet }) =>
        findArtifactForDevice(db, { ...fleet.credentials("open"), firmwareId: fleet.newestFirmwareId }),
    },
    {
      name: "check: with its last-seen time",
      of: "device",
      async run({ checks, fleet }) {
        await checks.checkForUpdate(fleet.credentials("upToDate"));
        await checks.close();
      },
    },
  ];
}

function operatorsWorks(): Readonly<Record<string, Work["run"]>> {
  const filters: readonly DeviceFilter[] = [
    {},
    { product: PRODUCT },
    { serial: "serial-42" },
    { product: PRODUCT, serialPrefix: "serial-77" },
    { group: "g40" },
    { group: "rare" },
    { attribute: { name: "modem", value: "40" } },
    { attribute: { name: "old", value: "yes" } },
    { product: PRODUCT, channel: "beta" },
    { product: PRODUCT, channel: "none" },
    { product: PRODUCT, version: "1.0.9" },
    { blocked: true },
    { notSeenSince: new Date("2020-01-01") },
    { product: PRODUCT, notSeenSince: new Date("2020-01-01") },
    { product: PRODUCT, channel: "beta", seenSince: new Date("2020-01-01"), notSeenSince: new Date("2020-01-02") },
    { product: PRODUCT, version: "1.0.9", notSeenSince: new Date("2020-01-01") },
    { group: "g40", notSeenSince: new Date("2020-01-01") },
  ];
  const states = ["offered", "failed", "timed_out", "cancelled", "succeeded"] as const;
  return {
    ...(Object.fromEntries(
      filters.map((filter) => [`devices by ${JSON.stringify(filter)}`, ({ db }) => listDevices(db, filter)] as const),
    ) as Record<string, Work["run"]>),
    "a device": ({ db, fleet }) => getDevice(db, { deviceId: fleet.deviceId("upToDate") }),
    "why a device has its answer": ({ db, fleet }) => explainDevice(db, { deviceId: fleet.deviceId("upToDate") }),
    "all upgrades": ({ db }) => listUpgrades(db, {}),
    "upgrades of a device": ({ db, fleet }) => listUpgrades(db, { deviceId: fleet.deviceId("upToDate") }),
    "upgrades of a firmware": ({ db, fleet }) => listUpgrades(db, { firmwareId: fleet.newestFirmwareId }),
    ...Object.fromEntries(
      states.flatMap((state) => [
        [`upgrades that are ${state}`, (({ db }) => listUpgrades(db, { state })) satisfies Work["run"]],
        [
          `upgrades of a firmware that are ${state}`,
          (({ db, fleet }) => listUpgrades(db, { state, firmwareId: fleet.newestFirmwareId })) satisfies Work["run"],
        ],
        [
          `upgrades of a rollout that are ${state}`,
          (({ db, fleet }) => listUpgrades(db, { state, rolloutId: fleet.listedRolloutId })) satisfies Work["run"],
        ],
      ]),
    ),
    "an upgrade": ({ db, fleet }) => getUpgrade(db, { upgradeId: fleet.upgradeId("upToDate") }),
    "an attempt's events": ({ db, fleet }) =>
      listAttemptEvents(db, { upgradeId: fleet.upgradeId("upToDate"), number: 1 }),
    "cancelling an upgrade": ({ db, fleet }) =>
      cancelUpgrade(db, { actor: SYSTEM, upgradeId: fleet.upgradeId("toCancel") }),
    "resetting an upgrade": ({ db, fleet }) =>
      resetUpgrade(db, { actor: SYSTEM, upgradeId: fleet.upgradeId("upToDate") }),
    "deleting a device": ({ db, fleet }) => deleteDevice(db, { actor: SYSTEM, deviceId: fleet.deviceId("toDelete") }),
    "rollouts of a product": ({ db }) => listRollouts(db, { product: PRODUCT }),
    "a rollout's allow-list": ({ db, fleet }) => listAllowedDevices(db, { rolloutId: fleet.listedRolloutId }),
    "firmware of a product": ({ db }) => listFirmware(db, { product: PRODUCT }),
    "gateway tokens of a product": ({ db }) => listGatewayTokens(db, { product: PRODUCT }),
    "figures of a product": ({ db }) => productFigures(db, { product: PRODUCT }),
    "figures of a rollout": ({ db, fleet }) => rolloutFigures(db, { rolloutId: fleet.listedRolloutId }),
    "the audit log": ({ db }) => listAudit(db, {}),
    "the audit log of a subject": ({ db }) => listAudit(db, { subjectId: "device-42" }),
    "the audit log of an operator": ({ db }) => listAudit(db, { actor: OPERATOR_ID }),
    "the audit log of an action": ({ db }) => listAudit(db, { action: "device.register" }),
    "files that nothing refers to": ({ db }) => unreferencedArtifacts(db, [artifactOf("none").sha256]),
  };
}

async function runOnce(db: Database, job: BackgroundJob): Promise<void> {
  await ensureJob(db, job);
  const result = await runBatch(db, { job, fence: undefined });
  if (result === "superseded") throw new Error(`${job.name}: a newer holder has done it.`);
}

/** Throws where it is not refused. */
async function refused(work: Promise<unknown>): Promise<void> {
  const answer = await work.catch(() => undefined);
  if (answer !== undefined) throw new Error("A wrong token was taken.");
}
