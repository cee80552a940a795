import {
  changeAllowList,
  createRollout,
  getRollout,
  listAllowedDevices,
  listRollouts,
  MAX_ALLOWED_AT_ONCE,
  ROLLOUT_STATES,
  ROLLOUT_STEPS,
  type RolloutStep,
  takeRolloutStep,
  updateRollout,
} from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { productNameSchema, publicIdSchema, serialSchema } from "../http/schemas.ts";
import { pageBody, pageFields, pageSchema } from "./page.ts";
import { newRolloutSchema, rolloutChangeSchema } from "./rollout-fields.ts";
import { rolloutSchema, rolloutView, termsOfBody } from "./rollout-view.ts";

const params = z.strictObject({ rolloutId: publicIdSchema });
const tag = "Rollouts";
const auth = "operator";

const deviceIdsSchema = z
  .strictObject({ deviceIds: z.array(publicIdSchema).min(1).max(MAX_ALLOWED_AT_ONCE) })
  .meta({ id: "DeviceIds" });
const changedSchema = z
  .object({ changed: z.int().meta({ description: "How many devices that was news for." }) })
  .meta({ id: "AllowListChanged" });
const allowedDeviceSchema = z.object({ id: publicIdSchema, serial: serialSchema }).meta({ id: "AllowedDevice" });

/** What each step means, for the reference. */
const STEPS: Readonly<Record<RolloutStep, readonly [summary: string, description: string]>> = {
  start: [
    "Start a rollout",
    "From now on the devices that it addresses are offered the firmware, which must be released.",
  ],
  pause: [
    "Pause a rollout",
    "Nothing new is offered, and what a device has not begun is held back. One that has begun may finish.",
  ],
  resume: ["Resume a paused rollout", "Every device is looked at again at its next check; thresholds count anew."],
  finish: ["Finish a rollout, for good", "Nothing new is offered. A device that has begun may finish."],
  stop: [
    "Stop a rollout, for good",
    "Nothing new is offered, and open attempts end at the device's next check, unless it is past the download.",
  ],
};

function stepRoute(step: RolloutStep): RouteDefinition {
  const [summary, description] = STEPS[step];
  return defineRoute({
    method: "POST",
    path: `/v1/rollouts/{rolloutId}/${step}`,
    operationId: `${step}Rollout`,
    ...{ summary, description: `${description} Asking again changes nothing.`, tag, auth },
    request: { params },
    responses: { 200: { description: "The rollout", body: rolloutSchema } },
    problems: ["NOT_FOUND", "INVALID_STATE"],
    async handler({ actor, params }, { db }) {
      return { status: 200, body: rolloutView(await takeRolloutStep(db, { actor, ...params, step })) };
    },
  });
}

function allowListRoute(change: "allow" | "disallow"): RouteDefinition {
  const allows = change === "allow";
  return defineRoute({
    method: "POST",
    path: allows ? "/v1/rollouts/{rolloutId}/devices" : "/v1/rollouts/{rolloutId}/devices/remove",
    operationId: allows ? "allowDevices" : "disallowDevices",
    summary: allows ? "Put devices on a rollout's allow-list" : "Take devices off a rollout's allow-list",
    description:
      "Devices on the list are in the rollout whatever its percentage, as far as it addresses them otherwise. It counts from " +
      "each one's next check on. An id that the product has not got is NOT_FOUND, and nothing is changed.",
    ...{ tag, auth },
    request: { params, body: { kind: "json", schema: deviceIdsSchema } },
    responses: { 200: { description: "Done", body: changedSchema } },
    problems: ["NOT_FOUND"],
    async handler({ actor, params, body }, { db }) {
      return { status: 200, body: await changeAllowList(db, { actor, ...params, change, ...body }) };
    },
  });
}

/** Rollouts: whom a firmware is offered to, when and how many at a time. */
export const rolloutRoutes: readonly RouteDefinition[] = [
  defineRoute({
    method: "POST",
    path: "/v1/firmware/{firmwareId}/rollouts",
    operationId: "createRollout",
    summary: "Make a rollout of a firmware",
    description: "It is a draft, and offers nothing until it is started.",
    ...{ tag, auth },
    request: {
      params: z.strictObject({ firmwareId: publicIdSchema }),
      body: { kind: "json", schema: newRolloutSchema, optional: true },
    },
    responses: { 201: { description: "Made", body: rolloutSchema, headers: { Location: "Where the rollout is." } } },
    problems: ["NOT_FOUND", "INVALID_FIELD", "INVALID_STATE"],
    async handler({ actor, params, body }, { db }) {
      const rollout = await createRollout(db, { actor, ...params, ...termsOfBody(body) });
      return { status: 201, headers: { Location: `/v1/rollouts/${rollout.id}` }, body: rolloutView(rollout) };
    },
  }),
  defineRoute({
    method: "GET",
    path: "/v1/rollouts",
    operationId: "listRollouts",
    summary: "List rollouts, newest first",
    ...{ tag, auth },
    request: {
      query: z.strictObject({
        product: productNameSchema.optional(),
        firmwareId: publicIdSchema.optional(),
        state: z.enum(ROLLOUT_STATES).optional(),
        ...pageFields,
      }),
    },
    responses: { 200: { description: "A page of rollouts", body: pageSchema(rolloutSchema) } },
    problems: ["NOT_FOUND", "INVALID_CURSOR"],
    async handler({ query }, { db }) {
      return { status: 200, body: pageBody(await listRollouts(db, query), rolloutView) };
    },
  }),
  defineRoute({
    method: "GET",
    path: "/v1/rollouts/{rolloutId}",
    operationId: "getRollout",
    summary: "Get a rollout",
    ...{ tag, auth },
    request: { params },
    responses: { 200: { description: "The rollout", body: rolloutSchema } },
    problems: ["NOT_FOUND"],
    async handler({ params }, { db }) {
      return { status: 200, body: rolloutView(await getRollout(db, params)) };
    },
  }),
  defineRoute({
    method: "PATCH",
    path: "/v1/rollouts/{rolloutId}",
    operationId: "updateRollout",
    summary: "Change a rollout's terms",
    description:
      "Anything may change in a draft and while it is paused. While it runs the percentage may grow, and caps and thresholds " +
      "may change. One that was started without a cap, a threshold or phases cannot get its first: nothing was counted. Finish it, and make another. New " +
      "phases begin with the first one.",
    ...{ tag, auth },
    request: { params, body: { kind: "json", schema: rolloutChangeSchema } },
    responses: { 200: { description: "The rollout", body: rolloutSchema } },
    problems: ["NOT_FOUND", "INVALID_FIELD", "INVALID_STATE"],
    async handler({ actor, params, body }, { db }) {
      return { status: 200, body: rolloutView(await updateRollout(db, { actor, ...params, ...termsOfBody(body) })) };
    },
  }),
  ...ROLLOUT_STEPS.map(stepRoute),
  defineRoute({
    method: "GET",
    path: "/v1/rollouts/{rolloutId}/devices",
    operationId: "listAllowedDevices",
    summary: "List a rollout's allow-list, the newest devices first",
    ...{ tag, auth },
    request: { params, query: z.strictObject(pageFields) },
    responses: { 200: { description: "A page of devices", body: pageSchema(allowedDeviceSchema) } },
    problems: ["NOT_FOUND", "INVALID_CURSOR"],
    async handler({ params, query }, { db }) {
      return { status: 200, body: pageBody(await listAllowedDevices(db, { ...params, ...query }), (device) => device) };
    },
  }),
  allowListRoute("allow"),
  allowListRoute("disallow"),
];
