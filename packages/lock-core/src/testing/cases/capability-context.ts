import assert from "node:assert/strict";
import type { LockStore } from "../../store.ts";
import {
  type FencingStore,
  hasFencing,
  hasInspection,
  hasSharedLocks,
  type InspectableStore,
  type SharedLockStore,
} from "../../store-capabilities.ts";
import type { CaseContext, CaseDefinition, StoreCapability } from "../contract-case.ts";

/** A case about stores that have one capability, by the types of `a` and `b`. */
export type CapabilityCase<Store> = Omit<CaseDefinition, "check"> & {
  check(context: CaseContext & { readonly a: Store; readonly b: Store }): Promise<void>;
};

type CasesAbout<Store> = (cases: readonly CapabilityCase<Store>[]) => readonly CaseDefinition[];

export const aboutSharedLocks: CasesAbout<SharedLockStore> = casesAbout("shared", hasSharedLocks);
export const aboutFencing: CasesAbout<FencingStore> = casesAbout("fencing", hasFencing);
export const aboutInspection: CasesAbout<InspectableStore> = casesAbout("inspection", hasInspection);

function casesAbout<Store extends LockStore>(
  capability: StoreCapability,
  has: (store: LockStore) => store is Store,
): CasesAbout<Store> {
  return (cases) =>
    cases.map(({ check, ...definition }) => ({
      ...definition,
      claims: [capability, ...(definition.claims ?? [])],
      async check({ a, b, ...context }) {
        assert.ok(has(a) && has(b), `the stores claim ${capability}, and have not its methods`);
        await check({ ...context, a, b });
      },
    }));
}
