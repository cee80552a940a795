import { ATTEMPT_STATES, productFigures, rolloutFigures } from "@ota/domain";
import { z } from "zod";
import { defineRoute, type RouteDefinition } from "../http/route.ts";
import { productNameSchema, publicIdSchema } from "../http/schemas.ts";
import { versionSchema } from "./fields.ts";

const count = z.int().min(0);

const attemptCounts = z
  .strictObject(
    Object.fromEntries(ATTEMPT_STATES.map((state) => [state, count])) as Record<
      (typeof ATTEMPT_STATES)[number],
      typeof count
    >,
  )
  .meta({
    id: "AttemptCounts",
    description: "The attempts in each state. A device that was tried twice has two.",
  });

const leftOff = z
  .object({
    entries: count.meta({ description: "How many entries." }),
    count: count.meta({ description: "What these count together." }),
  })
  .meta({ id: "LeftOff", description: "What `limit` has left off the list." });

const attemptFields = {
  attempts: attemptCounts,
  failures: z
    .array(
      z.object({
        state: z.enum(["failed", "timed_out"]),
        code: z.int().nullable().meta({ description: "The device's own number; null: it gave none." }),
        message: z.string().nullable().meta({
          description:
            "The device's own words, with `#` in the place of digits, so that a reason is one whatever it names.",
        }),
        count,
      }),
    )
    .meta({ description: "Why attempts have failed or timed out, the most frequent reason first." }),
  failuresLeftOff: leftOff,
};

const rolloutFiguresSchema = z
  .object({
    versions: z
      .array(z.object({ firmware: z.object({ id: publicIdSchema, version: versionSchema }), attempts: attemptCounts }))
      .meta({
        description:
          "The attempts by the firmware that they bring: the rollout's own first, then the steps that devices below its " +
          "`requiresVersion` are led over, the one with the most attempts first.",
      }),
    versionsLeftOff: leftOff,
    ...attemptFields,
  })
  .meta({ id: "RolloutFigures" });

const productFiguresSchema = z
  .object({
    devices: count,
    versions: z
      .array(
        z.object({
          version: z.string().nullable().meta({ description: "As devices report it; null: nothing is known." }),
          count,
        }),
      )
      .meta({ description: "What devices run as far as it is known, the most frequent version first." }),
    versionsLeftOff: leftOff,
    ...attemptFields,
  })
  .meta({ id: "ProductFigures" });

const query = z.strictObject({
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(200)
    .optional()
    .meta({ description: "How many versions and reasons at most.", override: { default: 20 } }),
});

const description =
  "The figures are kept with every change, not counted: they are those of this moment, and cost the same for any number of " +
  "devices.";

/** How a fleet stands: for dashboards, which may ask often. */
export const figureRoutes: readonly RouteDefinition[] = [
  defineRoute({
    method: "GET",
    path: "/v1/products/{product}/figures",
    operationId: "getProductFigures",
    summary: "Count a product's devices by version and its attempts by state",
    description,
    tag: "Figures",
    auth: "operator",
    request: { params: z.strictObject({ product: productNameSchema }), query },
    responses: { 200: { description: "The figures", body: productFiguresSchema } },
    problems: ["NOT_FOUND"],
    async handler({ params, query }, { db }) {
      const { versions, failures, ...figures } = await productFigures(db, { ...params, ...query });
      return { status: 200, body: { ...figures, versions: [...versions], failures: [...failures] } };
    },
  }),
  defineRoute({
    method: "GET",
    path: "/v1/rollouts/{rolloutId}/figures",
    operationId: "getRolloutFigures",
    summary: "Count a rollout's attempts by version and state, and rank its failures",
    description,
    tag: "Figures",
    auth: "operator",
    request: { params: z.strictObject({ rolloutId: publicIdSchema }), query },
    responses: { 200: { description: "The figures", body: rolloutFiguresSchema } },
    problems: ["NOT_FOUND"],
    async handler({ params, query }, { db }) {
      const { versions, failures, ...figures } = await rolloutFigures(db, { ...params, ...query });
      return { status: 200, body: { ...figures, versions: [...versions], failures: [...failures] } };
    },
  }),
];
