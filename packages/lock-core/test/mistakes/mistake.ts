import type { LockStore } from "@ota/lock-core";
import type { PlainBackend } from "./plain-store.ts";

/** A store with one deliberate mistake, and the ids of the contract cases that must fail because of it. */
export interface Mistake {
  readonly name: string;
  readonly Store: new (backend: PlainBackend) => LockStore;
  readonly caughtBy: readonly string[];
}
