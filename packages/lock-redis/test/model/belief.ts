import type { LockMode } from "@ota/lock-core";

/**
 * What a holder believes from `at` on, until its next line says otherwise: that it holds the key in this mode until
 * `until`. All times are milliseconds of CLOCK_MONOTONIC, which all processes of a machine share.
 */
export interface Belief {
  /** One lease, unique among all processes. */
  readonly lease: string;
  readonly key: string;
  readonly at: number;
  readonly until: number;
  readonly mode: LockMode;
  readonly token: string;
}

/** Something that no process may see, whatever the others do. */
export interface Complaint {
  readonly complaint: string;
}

/** The count of operations that a process has begun, by name, and of the errors that were their outcome. */
export interface Progress {
  readonly done: number;
  readonly counts: Readonly<Record<string, number>>;
}

export type Line = Belief | Complaint | Progress;

export function monotonicNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Numbers from 0 to 1 that follow from the seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
