import {
  ATTEMPT_STATES,
  type Attempt,
  type AttemptEvent,
  cancelUpgrade,
  getUpgrade,
  listAttemptEvents,
  listUpgrades,
  REPORTED_STATES,
  resetUpgrade,
  type Upgrade,
  type UpgradeHistory,
} from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import {
  attemptIdParamSchema,
  attemptIdSchema,
  productNameSchema,
  publicIdSchema,
  timeSchema,
} from "../http/schemas.ts";
import { pageBody, pageFields, pageSchema } from "./page.ts";

const params = z.strictObject({ upgradeId: publicIdSchema });

const stateSchema = z.enum(ATTEMPT_STATES);

const attemptSchema = z
  .object({
    id: attemptIdSchema,
    number: z.int().min(1).meta({ description: "1, 2, 3, … within the upgrade." }),
    state: stateSchema,
    rolloutId: publicIdSchema.meta({ description: "The rollout under whose offer it was begun." }),
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
  attemptsForgiven: z
    .int()
    .min(0)
    .meta({ description: "Attempts numbered above this count towards the cap: a reset has forgiven the others." }),
  cancelled: z.boolean().meta({
    description: "Whether an operator has cancelled it: its firmware is not offered to the device until a reset.",
  }),
  attempt: attemptSchema,
  createdAt: timeSchema,
};

const upgradeSchema = z.object(upgradeFields).meta({
  id: "Upgrade",
  description: "The one record of a device's move to a firmware; `attempt` is the newest one.",
});

const upgradeHistorySchema = z
  .object({
    ...upgradeFields,
    attempts: z.array(
      attemptSchema.extend({
        events: z.array(eventSchema).meta({ description: "The last 50." }),
        earlierEvents: z
          .string()
          .nullable()
          .meta({
            description:
              "Where there are more: the `cursor` by which `/v1/upgrades/{upgradeId}/attempts/{number}/events` goes on with " +
              "those before them.",
          }),
      }),
    ),
  })
  .meta({ id: "UpgradeHistory", description: "An upgrade with its attempts and their newest events, oldest first." });

/** Upgrades: which device moves to which firmware, how it goes, and an operator's say in it. */
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
        rolloutId: publicIdSchema.optional().meta({ description: "Of the newest attempt. With `state`." }),
        state: stateSchema.optional().meta({ description: "Of the newest attempt." }),
        ...pageFields,
      }),
    },
    responses: { 200: { description: "A page of upgrades", body: pageSchema(upgradeSchema) } },
    problems: ["NOT_FOUND", "INVALID_CURSOR", "INVALID_FIELD"],
    async handler({ query }, { db }) {
      return { status: 200, body: pageBody(await listUpgrades(db, query), upgradeView) };
    },
  }),
  defineRoute({
    method: "GET",
    path: "/v1/upgrades/{upgradeId}",
    operationId: "getUpgrade",
    summary: "Get an upgrade with its history",
    tag: "Fleet",
    auth: "operator",
    request: { params },
    responses: { 200: { description: "The upgrade", body: upgradeHistorySchema } },
    problems: ["NOT_FOUND"],
    async handler({ params }, { db }) {
      return { status: 200, body: upgradeHistoryView(await getUpgrade(db, params)) };
    },
  }),
  defineRoute({
    method: "GET",
    path: "/v1/upgrades/{upgradeId}/attempts/{number}/events",
    operationId: "listAttemptEvents",
    summary: "List the events of an attempt, newest first",
    description: "Of each attempt up to 1,000 events are kept, and those that have moved it beyond that.",
    tag: "Fleet",
    auth: "operator",
    request: {
      params: params.extend({
        number: attemptIdParamSchema.meta({ description: "The attempt's `number` within the upgrade, not its id." }),
      }),
      query: z.strictObject(pageFields),
    },
    responses: { 200: { description: "A page of events", body: pageSchema(eventSchema) } },
    problems: ["NOT_FOUND", "INVALID_CURSOR"],
    async handler({ params, query }, { db }) {
      return { status: 200, body: pageBody(await listAttemptEvents(db, { ...params, ...query }), eventView) };
    },
  }),
  defineRoute({
    method: "POST",
    path: "/v1/upgrades/{upgradeId}/cancel",
    operationId: "cancelUpgrade",
    summary: "Cancel an upgrade until it is reset",
    description:
      "The firmware is not offered to the device again, by whichever rollout, until the upgrade is reset. An open attempt " +
      "ends: at once while the device has not begun; one that has is asked to stop at its next check, and is `cancelling` " +
      "until it has answered. One that cannot stop goes on, and may succeed. An upgrade without an open attempt can be " +
      "cancelled as well, so that it is not tried again. Cancelling again changes nothing.",
    tag: "Fleet",
    auth: "operator",
    request: { params },
    responses: { 200: { description: "The upgrade as it is now", body: upgradeHistorySchema } },
    problems: ["NOT_FOUND", "INVALID_STATE"],
    async handler({ actor, params }, { db, observeMove: observe }) {
      return { status: 200, body: upgradeHistoryView(await cancelUpgrade(db, { actor, ...params, observe })) };
    },
  }),
  defineRoute({
    method: "POST",
    path: "/v1/upgrades/{upgradeId}/reset",
    operationId: "resetUpgrade",
    summary: "Let an upgrade be tried again: forgive its attempts, take its cancellation back",
    description:
      "The attempts so far count no more towards the cap, and the next one needs not wait. Resetting again changes nothing.",
    tag: "Fleet",
    auth: "operator",
    request: { params },
    responses: { 200: { description: "The upgrade as it is now", body: upgradeHistorySchema } },
    problems: ["NOT_FOUND"],
    async handler({ actor, params }, { db }) {
      return { status: 200, body: upgradeHistoryView(await resetUpgrade(db, { actor, ...params })) };
    },
  }),
];

function upgradeHistoryView(upgrade: UpgradeHistory): z.output<typeof upgradeHistorySchema> {
  const attempts = upgrade.attempts.map(({ events, earlierEvents = null, ...attempt }) => ({
    ...attemptView(attempt),
    events: events.map(eventView),
    earlierEvents,
  }));
  return { ...upgradeView(upgrade), attempts };
}

function upgradeView(upgrade: Upgrade): z.output<typeof upgradeSchema> {
  const { id, device, firmware, fromVersion, attemptsForgiven, cancelled, attempt, createdAt } = upgrade;
  return {
    ...{ id, device, firmware, fromVersion, attemptsForgiven, cancelled },
    attempt: attemptView(attempt),
    createdAt: createdAt.toISOString(),
  };
}

function attemptView(attempt: Attempt): z.output<typeof attemptSchema> {
  const { id, number, state, rolloutId, failureCode, failureMessage, openedAt, updatedAt, closedAt, deadlineAt } =
    attempt;
  return {
    ...{ id, number, state, rolloutId, failureCode, failureMessage },
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
