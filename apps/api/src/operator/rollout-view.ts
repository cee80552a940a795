import { type AttributeFilter, type GivenTerms, PAUSE_CAUSES, ROLLOUT_STATES, type Rollout } from "@ota/domain";
import { z } from "zod";
import { productNameSchema, publicIdSchema, timeSchema } from "../http/schemas.ts";
import { versionSchema } from "./fields.ts";
import { type TermsBody, termFields } from "./rollout-fields.ts";

/** What operators see of a rollout. */
export const rolloutSchema = z
  .object({
    id: publicIdSchema,
    firmware: z.object({ id: publicIdSchema, version: versionSchema, product: productNameSchema }),
    state: z.enum(ROLLOUT_STATES),
    pausedBy: z
      .enum(PAUSE_CAUSES)
      .nullable()
      .meta({ description: "An operator, or the threshold that was reached; null while it is not paused." }),
    ...termFields,
    phaseIndex: z.int().meta({ description: "The phase that it is in: 0 is the first." }),
    counts: z
      .object({
        live: z.int().meta({ description: "Attempts that are open." }),
        granted: z.int().meta({ description: "Devices that ever had an attempt." }),
        succeeded: z.int(),
        failed: z.int().meta({ description: "Attempts that failed or timed out." }),
      })
      .nullable()
      .meta({ description: "Kept where it has a cap, a threshold or phases; null: it has none." }),
    createdAt: timeSchema,
    startedAt: timeSchema.nullable(),
    endedAt: timeSchema.nullable().meta({ description: "When it was finished or stopped." }),
    updatedAt: timeSchema,
  })
  .meta({ id: "Rollout", description: "The offer of a firmware to part of a fleet." });

/** A rollout as JSON. */
export function rolloutView(rollout: Rollout): z.input<typeof rolloutSchema> {
  const { percentageBasisPoints, phases, window, errorThreshold, attributeFilter, ...rest } = rollout;
  const { createdAt, startedAt, endedAt, updatedAt } = rollout;
  return {
    ...rest,
    groups: [...rest.groups],
    hardwareRevisions: [...rest.hardwareRevisions],
    attributeFilter: attributeFilter === null ? null : { ...attributeFilter },
    percentage: percentageBasisPoints / 100,
    phases: phases.map(({ percentageBasisPoints: share, minSucceeded, minSuccessBasisPoints }) => ({
      ...{ percentage: share / 100, minSucceeded, minSuccessPercentage: minSuccessBasisPoints / 100 },
    })),
    window:
      window === null
        ? null
        : { days: [...window.days], from: timeOfDay(window.fromMinute), to: timeOfDay(window.toMinute) },
    errorThreshold:
      errorThreshold === null
        ? null
        : { failurePercentage: errorThreshold.failureBasisPoints / 100, minOutcomes: errorThreshold.minOutcomes },
    createdAt: createdAt.toISOString(),
    startedAt: startedAt?.toISOString() ?? null,
    endedAt: endedAt?.toISOString() ?? null,
    updatedAt: updatedAt.toISOString(),
  };
}

/** The terms of a body in the domain's units. */
export function termsOfBody(body: TermsBody): GivenTerms {
  const { percentage, phases, window, errorThreshold, attributeFilter, ...rest } = body;
  return {
    ...rest,
    // The domain reads the filter whole, and names the node that is wrong.
    attributeFilter: attributeFilter as AttributeFilter | null | undefined,
    percentageBasisPoints: percentage === undefined ? undefined : basisPoints(percentage),
    phases: phases?.map(({ percentage: share, minSucceeded, minSuccessPercentage }) => ({
      percentageBasisPoints: basisPoints(share),
      minSucceeded,
      minSuccessBasisPoints: basisPoints(minSuccessPercentage),
    })),
    window:
      window == null ? window : { days: window.days, fromMinute: minute(window.from), toMinute: minute(window.to) },
    errorThreshold:
      errorThreshold == null
        ? errorThreshold
        : {
            failureBasisPoints: basisPoints(errorThreshold.failurePercentage),
            minOutcomes: errorThreshold.minOutcomes,
          },
  };
}

function basisPoints(percent: number): number {
  return Math.round(percent * 100);
}

/** `HH:MM` in minutes after midnight, and back. */
function minute(time: string): number {
  return Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
}

export function timeOfDay(minutes: number): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}
