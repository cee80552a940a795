import {
  ATTEMPT_STATES,
  type Attempt,
  type AttemptEvent,
  getUpgrade,
  listUpgrades,
  REPORTED_STATES,
  type Upgrade,
} from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { attemptIdSchema, productNameSchema, publicIdSchema, timeSchema } from "../http/schemas.ts";
import { pageBody, pageFields, pageSchema } from "./page.ts";

const stateSchema = z.enum(ATTEMPT_STATES);

const attemptSchema = z
  .object({
    id: attemptIdSchema,
    number: z.int().min(1).meta({ description: "1, 2, 3, … within the upgrade." }),
    state: stateSchema,
    failureCode: z.int().nullable(),
    failureMessage: z.string().nullable(),
    openedAt: timeSchema,
    updatedAt: timeSchema,
    closedAt: timeSchema.nullable(),
    deadlineAt: timeSchema.nullable().meta({ description: "When it is ended if the device stays silent." }),
  })
  .meta({ id: "Attempt", description: "One try on an upgrade." });

const eventSchema = z
  .object({
    seq: z.int().min(1).meta({ description: "The order of receipt." }),
    reportedState: z.enum(REPORTED_STATES).nullable().meta({ description: "null: the service itself moved it." }),
    fromState: stateSchema.nullable().meta({ description: "null: the attempt was opened by this." }),
    toState: stateSchema.meta({ description: "Equal to `fromState` where the report was history only." }),
    reportedVersion: z.string().nullable(),
    progressPercent: z.int().min(0).max(100).nullable(),
    message: z.string().nullable(),
    details: z.array(z.string()),
    code: z.int().nullable(),
    deviceTime: timeSchema.nullable().meta({ description: "By the device's own clock." }),
    receivedAt: timeSchema,
  })
  .meta({ id: "AttemptEvent" });

const upgradeFields = {
  id: publicIdSchema,
  device: z.object({ id: publicIdSchema, serial: z.string(), product: productNameSchema }),
  firmware: z.object({ id: publicIdSchema, version: z.string() }),
  fromVersion: z.string().nullable().meta({ description: "What the device ran when the record was made." }),
  attempt: attemptSchema,
  createdAt: timeSchema,
};

const upgradeSchema = z.object(upgradeFields).meta({
  id: "Upgrade",
  description: "The one record of a device's move to a firmware; `attempt` is the newest one.",
});

const upgradeHistorySchema = z
  .object({ ...upgradeFields, attempts: z.array(attemptSchema.extend({ events: z.array(eventSchema) })) })
  .meta({ id: "UpgradeHistory", description: "An upgrade with its attempts and their events, oldest first." });

/** Upgrades: which device moves to which firmware, and how it goes. */
export const upgradeRoutes: readonly RouteDefinition[] = [
  defineRoute({
    method: "GET",
    path: "/v1/upgrades",
    operationId: "listUpgrades",
    summary: "List upgrades, newest first",
    tag: "Fleet",
    auth: "operator",
    request: {
      query: z.strictObject({
        deviceId: publicIdSchema.optional(),
        firmwareId: publicIdSchema.optional(),
        state: stateSchema.optional().meta({ description: "Of the newest attempt." }),
        ...pageFields,
      }),
    },
    responses: { 200: { description: "A page of upgrades", body: pageSchema(upgradeSchema) } },
    problems: ["NOT_FOUND", "INVALID_CURSOR"],
    async handler({ query }, { db }) {
      return { status: 200, body: pageBody(await listUpgrades(db, query), upgradeView) };
    },
  }),
  defineRoute({
    method: "GET",
    path: "/v1/upgrades/{upgradeId}",
    operationId: "getUpgrade",
    summary: "Get an upgrade with its whole history",
    tag: "Fleet",
    auth: "operator",
    request: { params: z.strictObject({ upgradeId: publicIdSchema }) },
    responses: { 200: { description: "The upgrade", body: upgradeHistorySchema } },
    problems: ["NOT_FOUND"],
    async handler({ params }, { db }) {
      const upgrade = await getUpgrade(db, params);
      const attempts = upgrade.attempts.map(({ events, ...attempt }) => ({
        ...attemptView(attempt),
        events: events.map(eventView),
      }));
      return { status: 200, body: { ...upgradeView(upgrade), attempts } };
    },
  }),
];

function upgradeView(upgrade: Upgrade): z.output<typeof upgradeSchema> {
  const { id, device, firmware, fromVersion, attempt, createdAt } = upgrade;
  return { id, device, firmware, fromVersion, attempt: attemptView(attempt), createdAt: createdAt.toISOString() };
}

function attemptView(attempt: Attempt): z.output<typeof attemptSchema> {
  const { id, number, state, failureCode, failureMessage, openedAt, updatedAt, closedAt, deadlineAt } = attempt;
  return {
    ...{ id, number, state, failureCode, failureMessage },
    openedAt: openedAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
    closedAt: closedAt?.toISOString() ?? null,
    deadlineAt: deadlineAt?.toISOString() ?? null,
  };
}

function eventView(event: AttemptEvent): z.output<typeof eventSchema> {
  const { seq, reportedState, fromState, toState, reportedVersion, progressPercent, message, details, code } = event;
  return {
    ...{ seq, reportedState, fromState, toState, reportedVersion, progressPercent, message, code },
    details: [...details],
    deviceTime: event.deviceTime?.toISOString() ?? null,
    receivedAt: event.receivedAt.toISOString(),
  };
}
