/** Long enough for any version that people or build machines write, short enough for an index. */
const MAX_LENGTH = 128;

/**
 * The numeric parts of a dotted version, without leading zeros and without trailing zero parts: what `1`, `1.0`,
 * `01.0` and `1.0.0` have in common. Parts stay text, because build numbers and dates may exceed 2^53.
 * `undefined` when the text is no dotted version.
 */
export function parseDotted(text: string): readonly string[] | undefined {
  if (text.length > MAX_LENGTH || !/^\d+(?:\.\d+)*$/.test(text)) return undefined;
  const parts = text.split(".").map((part) => part.replace(/^0+(?=\d)/, ""));
  let length = parts.length;
  while (length > 1 && parts[length - 1] === "0") length -= 1;
  return parts.slice(0, length);
}

/** Negative, zero or positive as `a` is older than, the same as or newer than `b`; a missing part counts as 0. */
export function compareDotted(a: readonly string[], b: readonly string[]): number {
  const length = Math.max(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const order = compareNumerals(a[index] ?? "0", b[index] ?? "0");
    if (order !== 0) return order;
  }
  return 0;
}

/** Without leading zeros the longer numeral is the greater number, and among equals in length text order is numeric. */
function compareNumerals(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
