import { requireAttemptSettings } from "../attempts/attempt-settings.ts";
import type { RolloutTerms } from "../catalog/rollouts.ts";
import { readAttributeFilter } from "../decide/attribute-filter.ts";
import { requireGroups } from "../devices/device-fields.ts";
import { invalidField, requireChannel, requireInteger, requireText } from "../fields.ts";
import type { rollouts } from "../schema/index.ts";

/** What a rollout is made with where nothing else is said: everybody in the channel "stable", at any time. */
export const DEFAULT_TERMS: RolloutTerms = {
  channel: "stable",
  groups: [],
  attributeFilter: null,
  hardwareRevisions: [],
  priority: 0,
  percentageBasisPoints: 10_000,
  phases: [],
  window: null,
  maxConcurrent: null,
  maxTotal: null,
  successThreshold: null,
  errorThreshold: null,
  maxAttempts: null,
  backoffSeconds: null,
  timeoutsSeconds: {},
  allowDowngrade: false,
  requiresConfirmation: false,
};

const MAX_PHASES = 20;
const MAX_HARDWARE_REVISIONS = 64;
const BASIS_POINTS = { least: 0, most: 10_000 };
/** Far from int32's ends, and room enough for any scale that people use. */
export const PRIORITY = { least: -1000, most: 1000 };
/** Any number of devices that there may be. */
const COUNT = { least: 1, most: 1_000_000_000 };

/** What is given, without what is `undefined`. */
export type GivenTerms = { readonly [Name in keyof RolloutTerms]?: RolloutTerms[Name] | undefined };

/** The terms with what is given in their place. Throws INVALID_FIELD, with the field's name. */
export function changedTerms(terms: RolloutTerms, given: GivenTerms): RolloutTerms {
  const changes = Object.fromEntries(
    Object.keys(DEFAULT_TERMS).flatMap((name) => {
      const value = given[name as keyof RolloutTerms];
      return value === undefined ? [] : [[name, value]];
    }),
  ) as Partial<RolloutTerms>;
  const changed = { ...terms, ...changes };
  requireTerms(changed);
  const first = changed.phases[0];
  if (first === undefined) return changed;
  // Phases that stay as they are leave the rollout in the one that it is in.
  const begins = changedNames(terms, changed).includes("phases");
  const percentageBasisPoints = begins ? first.percentageBasisPoints : terms.percentageBasisPoints;
  const { percentageBasisPoints: wanted = percentageBasisPoints } = given;
  if (wanted !== percentageBasisPoints) invalidField("percentage", "left out with phases, which have theirs");
  return { ...changed, percentageBasisPoints };
}

/** Which terms differ. */
export function changedNames(before: RolloutTerms, after: RolloutTerms): readonly (keyof RolloutTerms)[] {
  const names = Object.keys(DEFAULT_TERMS) as (keyof RolloutTerms)[];
  return names.filter((name) => sortedJson(before[name]) !== sortedJson(after[name]));
}

/** As JSON with the names of every object in one order: the database keeps its own. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_name, part) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

function requireTerms(terms: RolloutTerms): void {
  const { channel, groups, attributeFilter, hardwareRevisions, priority, percentageBasisPoints } = terms;
  requireChannel("channel", channel);
  requireGroups("groups", groups);
  if (attributeFilter !== null) readAttributeFilter(attributeFilter);
  for (const revision of hardwareRevisions) requireText("hardwareRevisions", revision);
  if (hardwareRevisions.length > MAX_HARDWARE_REVISIONS || new Set(hardwareRevisions).size < hardwareRevisions.length) {
    invalidField("hardwareRevisions", `at most ${MAX_HARDWARE_REVISIONS}, each once`);
  }
  requireInteger("priority", priority, PRIORITY);
  requireInteger("percentage", percentageBasisPoints, BASIS_POINTS);
  requirePhases(terms);
  requireWindow(terms);
  requireLimits(terms);
}

function requirePhases({ phases, successThreshold }: RolloutTerms): void {
  if (phases.length > MAX_PHASES) invalidField("phases", `at most ${MAX_PHASES}`);
  let before = -1;
  for (const [index, { percentageBasisPoints, minSucceeded, minSuccessBasisPoints }] of phases.entries()) {
    const field = `phases[${index}]`;
    requireInteger(`${field}.percentage`, percentageBasisPoints, BASIS_POINTS);
    if (percentageBasisPoints <= before) invalidField(`${field}.percentage`, "greater than the phase's before");
    before = percentageBasisPoints;
    requireInteger(`${field}.minSucceeded`, minSucceeded, COUNT);
    requireInteger(`${field}.minSuccessPercentage`, minSuccessBasisPoints, BASIS_POINTS);
    // Both are counted from the phase's beginning, and again after a pause: the phase would never end.
    const endless = successThreshold !== null && index < phases.length - 1 && successThreshold <= minSucceeded;
    if (endless)
      invalidField("successThreshold", `greater than ${field}.minSucceeded, or it pauses before each next phase`);
  }
}

function requireWindow({ window }: RolloutTerms): void {
  if (window === null) return;
  const { days, fromMinute, toMinute } = window;
  for (const day of days) requireInteger("window.days", day, { least: 1, most: 7 });
  if (days.length === 0 || new Set(days).size < days.length) invalidField("window.days", "1 to 7 days, each once");
  requireInteger("window.from", fromMinute, { least: 0, most: 1439 });
  requireInteger("window.to", toMinute, { least: 0, most: 1439 });
}

function requireLimits(terms: RolloutTerms): void {
  const { maxConcurrent, maxTotal, successThreshold, errorThreshold } = terms;
  for (const [field, count] of Object.entries({ maxConcurrent, maxTotal, successThreshold })) {
    if (count !== null) requireInteger(field, count, COUNT);
  }
  if (errorThreshold !== null) {
    const { failureBasisPoints, minOutcomes } = errorThreshold;
    requireInteger("errorThreshold.failurePercentage", failureBasisPoints, { ...BASIS_POINTS, least: 1 });
    requireInteger("errorThreshold.minOutcomes", minOutcomes, COUNT);
  }
  requireAttemptSettings(terms);
}

/** Whether anything of a rollout is counted: then it has a row of counters. */
export function needsCounters({ maxConcurrent, maxTotal, successThreshold, errorThreshold, phases }: RolloutTerms) {
  const limits = [maxConcurrent, maxTotal, successThreshold, errorThreshold];
  return phases.length > 0 || limits.some((limit) => limit !== null);
}

/** The columns that hold the terms. */
export function columnsOf(
  terms: RolloutTerms,
): Omit<typeof rollouts.$inferInsert, "publicId" | "firmwareId" | "state"> {
  const { window, errorThreshold, groups, hardwareRevisions, ...columns } = terms;
  return {
    ...columns,
    groups: [...groups],
    hardwareRevisions: [...hardwareRevisions],
    windowDays: window === null ? null : [...window.days],
    windowFromMinute: window?.fromMinute ?? null,
    windowToMinute: window?.toMinute ?? null,
    errorThresholdBasisPoints: errorThreshold?.failureBasisPoints ?? null,
    ...(errorThreshold === null ? {} : { errorThresholdMinOutcomes: errorThreshold.minOutcomes }),
  };
}
