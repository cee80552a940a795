import { invalidField, requireInteger } from "../fields.ts";
import type { SilenceTimeouts } from "../schema/columns.ts";
import { LIVE_ATTEMPT_STATES } from "../vocabulary.ts";

/** How often a firmware is tried on a device, how soon again, and when a silent attempt is ended. */
export interface AttemptSettings {
  readonly maxAttempts: number | null;
  readonly backoffSeconds: number | null;
  readonly timeoutsSeconds: SilenceTimeouts;
}

/** More tries than that are none that anybody waits for, and so is a longer time. */
const MAX_ATTEMPTS = 100;
const MAX_SECONDS = 366 * 86_400;

/** Refuses settings that cannot be; `null` and what is left out is as a wider place says. Throws INVALID_FIELD. */
export function requireAttemptSettings(
  settings: { readonly [Name in keyof AttemptSettings]?: AttemptSettings[Name] | undefined },
): void {
  const { maxAttempts, backoffSeconds, timeoutsSeconds = {} } = settings;
  if (maxAttempts != null) requireInteger("maxAttempts", maxAttempts, { least: 1, most: MAX_ATTEMPTS });
  if (backoffSeconds != null) requireInteger("backoffSeconds", backoffSeconds, { least: 0, most: MAX_SECONDS });
  for (const [state, seconds] of Object.entries(timeoutsSeconds)) {
    const field = `timeoutsSeconds.${state}`;
    if (!LIVE_ATTEMPT_STATES.some((live) => live === state)) invalidField(field, "left out: it is no open state");
    if (seconds !== null) requireInteger(field, seconds, { least: 1, most: MAX_SECONDS });
  }
}
