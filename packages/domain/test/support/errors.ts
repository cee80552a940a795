import { OtaError, type OtaErrorCode } from "../../src/index.ts";

/** The code of the error that the promise fails with. Anything that is no `OtaError` is a fault and is thrown on. */
export async function codeOf(promise: Promise<unknown>): Promise<OtaErrorCode | "no error"> {
  try {
    await promise;
    return "no error";
  } catch (error) {
    if (error instanceof OtaError) return error.code;
    throw error;
  }
}

/** How many of the promises ended with each code. */
export async function tally(promises: readonly Promise<unknown>[]): Promise<Record<string, number>> {
  const codes = await Promise.all(promises.map(codeOf));
  return Object.fromEntries([...Map.groupBy(codes, (code) => code)].map(([code, group]) => [code, group.length]));
}

/** Calls `make` many times at once. */
export function inParallel<Result>(times: number, make: (index: number) => Promise<Result>): Promise<Result>[] {
  return Array.from({ length: times }, (_, index) => make(index));
}
