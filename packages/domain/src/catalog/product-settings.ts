import { requireAttemptSettings } from "../attempts/attempt-settings.ts";
import { requireAttributeName, requireTimeZone } from "../devices/device-fields.ts";
import { requireInteger } from "../fields.ts";
import type { AuditFacts } from "../schema/audit-log.ts";
import type { SilenceTimeouts } from "../schema/columns.ts";

/** Device protocols carry the interval as HH:MM:SS below 24 hours. */
const POLL_INTERVAL_SECONDS = { least: 30, most: 86_399 };

/** What may change in a product. What is left out stays, or is the service's default. */
export interface ProductSettings {
  /** 30 to 86399. */
  readonly pollIntervalSeconds?: number | undefined;
  /** The IANA name of where devices are that have no time zone of their own. */
  readonly timeZone?: string | undefined;
  /** How often a firmware is tried on a device until an operator resets the record, where the rollout does not say. */
  readonly maxAttempts?: number | undefined;
  /** The pause after a record's first attempt, where the rollout does not say; it doubles with each further one. */
  readonly backoffSeconds?: number | undefined;
  /**
   * When a silent attempt is ended, by its state: `null` is never, and a state that is left out has the service's
   * default. It replaces what was set before as a whole, for attempts whose state changes from now on.
   */
  readonly timeoutsSeconds?: SilenceTimeouts | undefined;
  /** By which names DDI devices tell their hardware revision and their version among their attributes; `null`: they do not. */
  readonly hardwareAttribute?: string | null | undefined;
  readonly versionAttribute?: string | null | undefined;
}

/** Throws INVALID_FIELD, with the field's name. */
export function requireProductSettings(settings: ProductSettings): void {
  const { pollIntervalSeconds, timeZone } = settings;
  if (pollIntervalSeconds !== undefined)
    requireInteger("pollIntervalSeconds", pollIntervalSeconds, POLL_INTERVAL_SECONDS);
  if (timeZone !== undefined) requireTimeZone("timeZone", timeZone);
  requireAttemptSettings(settings);
  for (const field of ["hardwareAttribute", "versionAttribute"] as const) {
    const name = settings[field];
    if (name != null) requireAttributeName(field, name);
  }
}

/** All of them. */
type Settings = { readonly [Name in keyof ProductSettings]-?: Exclude<ProductSettings[Name], undefined> };

/** The settings as the audit log shows them. */
export function settingsFacts(settings: Settings): AuditFacts {
  const { pollIntervalSeconds, timeZone, maxAttempts, backoffSeconds, hardwareAttribute, versionAttribute } = settings;
  // In one order, as the database keeps it: two that say the same look the same.
  const timeouts = Object.entries(settings.timeoutsSeconds).sort(([one], [other]) => (one < other ? -1 : 1));
  return {
    ...{ pollIntervalSeconds, timeZone, maxAttempts, backoffSeconds, timeoutsSeconds: Object.fromEntries(timeouts) },
    ...{ hardwareAttribute, versionAttribute },
  };
}
