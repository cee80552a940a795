/** Enough for a sentence and a path, small enough that a thousand of them are no burden. */
const MAX_MESSAGE_LENGTH = 1_000;
/** An installer's last screenful of log. */
const MAX_DETAILS = 50;
const MAX_DETAIL_LENGTH = 500;
/** What a device says about its version or hardware is a word; a longer one is no version anyway. */
const MAX_WORD_LENGTH = 256;

const INT32 = { least: -(2 ** 31), most: 2 ** 31 - 1 };

/** The device's message as it is kept: cut, never refused, since what it belongs to may be a final report. */
export function storableMessage(text: string | undefined): string | null {
  return text === undefined ? null : cut(text, MAX_MESSAGE_LENGTH);
}

/** The device's log lines as they are kept: the last ones, since they tell how it ended. */
export function storableDetails(lines: readonly string[] | undefined): string[] {
  return (lines ?? []).slice(-MAX_DETAILS).map((line) => cut(line, MAX_DETAIL_LENGTH));
}

/** A version or hardware revision as the device wrote it. */
export function storableWord(text: string): string {
  return cut(text, MAX_WORD_LENGTH);
}

/** The device's own code, where it is one that an int32 holds. */
export function storableCode(code: number | undefined): number | null {
  if (code === undefined || !Number.isInteger(code)) return null;
  return code >= INT32.least && code <= INT32.most ? code : null;
}

/** Progress in whole percent, from 0 to 100. */
export function storablePercent(percent: number | undefined): number | null {
  if (percent === undefined || Number.isNaN(percent)) return null;
  return Math.round(Math.min(100, Math.max(0, percent)));
}

/** The device's clock, where it shows a time that a database can hold: years 1 to 9999. */
export function storableTime(time: Date | undefined): Date | null {
  const year = time?.getUTCFullYear();
  return time !== undefined && year !== undefined && year >= 1 && year <= 9999 ? time : null;
}

/** PostgreSQL refuses NUL, and half a surrogate pair has no UTF-8 form: both become the replacement character. */
function cut(text: string, length: number): string {
  return text.slice(0, length).replaceAll("\u0000", "\ufffd").toWellFormed();
}
