import type { ReportRecord } from "../attempts/record-transition.ts";
import {
  storableCode,
  storableDetails,
  storableMessage,
  storablePercent,
  storableTime,
  storableWord,
} from "../attempts/report-text.ts";
import type { Report } from "./report.ts";

/** How a line begins that the service itself adds to what a device says; hawkBit's words, whose devices are not told it. */
export const SERVICE_NOTE = "Update Server: ";

/** So many names say enough. */
const MAX_IGNORED = 20;

/**
 * A report as it is kept, and the names of what is not: fields that hold only data cost no report, which may be a
 * device's last word. What is left out stands in the history too, as the last line of the details.
 */
export function storableReport(report: Report): {
  readonly record: ReportRecord;
  readonly ignored: readonly string[];
} {
  const record = {
    state: report.state,
    version: report.version === undefined ? null : storableWord(report.version),
    progressPercent: storablePercent(report.progressPercent),
    message: storableMessage(report.message),
    code: storableCode(report.code),
    deviceTime: storableTime(report.deviceTime),
  };
  const lost = (["progressPercent", "code", "deviceTime"] as const).filter(
    (name) => report[name] !== undefined && record[name] === null,
  );
  const ignored = [...(report.unreadable ?? []), ...lost].slice(0, MAX_IGNORED).map(storableWord);
  const note = ignored.length === 0 ? [] : [`${SERVICE_NOTE}ignored, as it could not be kept: ${ignored.join(", ")}`];
  return { record: { ...record, details: storableDetails([...(report.details ?? []), ...note]) }, ignored };
}
