import type { ByteRange } from "./artifact-store.ts";

/** What a Range header asks for: the whole, one part of it, or a part that does not exist. */
export type RangeDecision =
  | { readonly kind: "whole" }
  | { readonly kind: "part"; readonly range: ByteRange }
  | { readonly kind: "unsatisfiable" };

const ONE_RANGE = /^bytes[ \t]*=[ \t]*(\d*)[ \t]*-[ \t]*(\d*)[ \t]*$/i;

/**
 * Reads a Range header for a file of `sizeBytes` (at least 1) by RFC 9110 §14.1.2 and §14.2. What the RFC lets a server
 * ignore is ignored and answered with the whole: another unit, nonsense, and more than one range, because a firmware
 * client has no use for `multipart/byteranges` and many small ranges are a known way to overload a server.
 */
export function decideRange(header: string | undefined, sizeBytes: number): RangeDecision {
  const [, first = "", last = ""] = ONE_RANGE.exec(header ?? "") ?? [];
  if (first === "" && last === "") return { kind: "whole" };

  if (first === "") {
    // "-500": the last 500 bytes; the whole file if it has fewer.
    const suffixBytes = Number(last);
    if (suffixBytes === 0) return { kind: "unsatisfiable" };
    return { kind: "part", range: { start: Math.max(0, sizeBytes - suffixBytes), end: sizeBytes - 1 } };
  }

  const start = Number(first);
  if (last !== "" && Number(last) < start) return { kind: "whole" };
  if (start >= sizeBytes) return { kind: "unsatisfiable" };
  return { kind: "part", range: { start, end: last === "" ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) } };
}
