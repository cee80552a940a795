import type { LockStore } from "@ota/lock-core";
import type { FullBackend } from "./full-store.ts";
import type { PlainBackend } from "./plain-store.ts";

/** A store with one deliberate mistake, and the ids of the contract cases that must fail because of it. */
export interface Mistake<Backend = PlainBackend> {
  readonly name: string;
  readonly Store: new (backend: Backend) => LockStore;
  readonly caughtBy: readonly string[];
}

/** A mistake in a store that has every capability. */
export type FullMistake = Mistake<FullBackend>;
