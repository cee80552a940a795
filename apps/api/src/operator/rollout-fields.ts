import { LIVE_ATTEMPT_STATES, MAX_FILTER_NODES } from "@ota/domain";
import { z } from "zod";
import { plainText } from "../http/schemas.ts";
import { channelSchema, hardwareRevisionSchema } from "./fields.ts";

/** A share in percent, in steps of a hundredth. */
export const percentageSchema = z
  .number()
  .min(0)
  .max(100)
  .refine((percent) => Math.abs(percent * 100 - Math.round(percent * 100)) < 1e-6, "finer than a hundredth");

const count = z.int().min(1).max(1_000_000_000);
const timeOfDaySchema = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, "a time of day as HH:MM");

const filterSchema = z.record(z.string(), z.unknown()).meta({
  description:
    'A condition on the device\'s attributes: `{"all":[…]}`, `{"any":[…]}` or `{"not":…}` of `{"attribute":"region","eq":"eu"}`, ' +
    '`{"attribute":"region","in":["eu","uk"]}`, `{"attribute":"region","exists":true}` and ' +
    `\`{"attribute":"bootloader","semver":">=2.1 <3"}\`; at most ${MAX_FILTER_NODES} of these in all. Null: whatever they are.`,
  example: { all: [{ attribute: "region", in: ["eu", "uk"] }, { not: { attribute: "frozen", exists: true } }] },
});

export const windowSchema = z.strictObject({
  days: z
    .array(z.int().min(1).max(7))
    .min(1)
    .max(7)
    .meta({ description: "The days on which it opens: 1 is Monday, 7 Sunday." }),
  from: timeOfDaySchema.meta({ example: "22:00" }),
  to: timeOfDaySchema.meta({ description: "At or before `from`: on the next day.", example: "04:00" }),
});

export const phaseSchema = z.strictObject({
  percentage: percentageSchema.meta({ description: "The share of the devices while it is in this phase." }),
  minSucceeded: count.meta({ description: "So many attempts must have succeeded before the next phase begins." }),
  minSuccessPercentage: percentageSchema.meta({ description: "And this share of its outcomes must be successes." }),
});

export const errorThresholdSchema = z.strictObject({
  failurePercentage: percentageSchema
    .min(0.01)
    .meta({ description: "Of the attempts that succeeded, failed or timed out." }),
  minOutcomes: count.meta({ description: "Of at least so many of them." }),
});

export const timeoutsSchema = z.partialRecord(
  z.enum(LIVE_ATTEMPT_STATES),
  z
    .int()
    .min(1)
    .max(366 * 86_400)
    .nullable(),
);

/** The terms of a rollout as JSON: what each means, whether it is written or read. */
export const termFields = {
  channel: channelSchema.meta({ description: "The channel whose devices it is for." }),
  groups: z.array(plainText(63)).max(64).meta({ description: "For devices in any of these; empty: in any or none." }),
  attributeFilter: filterSchema.nullable(),
  hardwareRevisions: z
    .array(hardwareRevisionSchema)
    .max(64)
    .meta({ description: "The hardware it is for, within what the firmware runs on; empty: all of that." }),
  priority: z.int().min(-1000).max(1000).meta({
    description: "Of several offers a device takes the one of the highest priority, then the newest version.",
  }),
  percentage: percentageSchema.meta({
    description:
      "The share of these devices. Which ones is decided by a hash of rollout and device, so that a growing share only " +
      "adds devices. Devices on the allow-list are in whatever it is. With phases it is the phase's.",
  }),
  phases: z
    .array(phaseSchema)
    .max(20)
    .meta({ description: "Growing shares, each begun when the one before has gone well; empty: none." }),
  window: windowSchema.nullable().meta({
    description: "When updates may begin, by the clock of the device's time zone; null: at any time.",
  }),
  maxConcurrent: count.nullable().meta({ description: "How many attempts may be open at once; null: any number." }),
  maxTotal: count.nullable().meta({ description: "How many devices may ever have an attempt; null: any number." }),
  successThreshold: count.nullable().meta({
    description:
      "It pauses after so many successes since it was started, was resumed or came to its phase, for you to look at it. " +
      "More than each phase's `minSucceeded`, the last one's excepted.",
  }),
  errorThreshold: errorThresholdSchema.nullable().meta({
    description:
      "It pauses when this share of the attempts since it was started, was resumed or came to its phase has failed or " +
      "timed out.",
  }),
  maxAttempts: z
    .int()
    .min(1)
    .max(100)
    .nullable()
    .meta({ description: "How often the firmware is tried on a device; null: as the product says." }),
  backoffSeconds: z
    .int()
    .min(0)
    .max(366 * 86_400)
    .nullable()
    .meta({
      description: "The pause after the first attempt, doubled with each further one; null: as the product says.",
    }),
  timeoutsSeconds: timeoutsSchema.meta({
    description:
      "By an attempt's state, how long a device may be silent; null: for ever; left out: as the product says.",
  }),
  allowDowngrade: z
    .boolean()
    .meta({ description: "Whether devices that run a newer version are taken back to this one." }),
  requiresConfirmation: z.boolean().meta({ description: "Whether the device's user is asked before the download." }),
};

const termsSchema = z.strictObject(termFields).partial();

/** The terms that a rollout is made with. */
export const newRolloutSchema = termsSchema.meta({
  id: "NewRollout",
  description: "What is left out addresses everybody in the channel `stable`, at any time and without a cap.",
});

/** Changes of a rollout's terms. */
export const rolloutChangeSchema = termsSchema.meta({ id: "RolloutChange", description: "What is left out stays." });

export type TermsBody = z.output<typeof termsSchema>;
