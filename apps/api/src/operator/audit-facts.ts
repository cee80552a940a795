import type { AuditEntry } from "@ota/domain";
import { timeOfDay } from "./rollout-view.ts";

type Facts = Exclude<AuditEntry["after"], null>;

/** The domain's names of shares, in hundredths of a percent, and the API's, in percent. */
const SHARES: Readonly<Record<string, string>> = {
  percentageBasisPoints: "percentage",
  minSuccessBasisPoints: "minSuccessPercentage",
  failureBasisPoints: "failurePercentage",
};
/** And those of the hours of a window, in minutes after midnight. */
const TIMES: Readonly<Record<string, string>> = { fromMinute: "from", toMinute: "to" };

/** What the log keeps of a rollout, by the names and in the units in which operators write and read rollouts. */
export function rolloutFacts(facts: Facts): Facts {
  return translated(facts) as Facts;
}

function translated(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(translated);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => {
      const [share, time] = [SHARES[name], TIMES[name]];
      if (share !== undefined && typeof part === "number") return [share, part / 100];
      if (time !== undefined && typeof part === "number") return [time, timeOfDay(part)];
      return [name, translated(part)];
    }),
  );
}
