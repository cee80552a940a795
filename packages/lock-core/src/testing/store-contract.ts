import { systemClock } from "../clock.ts";
import { backendCases } from "./cases/backend.ts";
import { capabilityCases } from "./cases/capabilities.ts";
import { expiryCases } from "./cases/expiry.ts";
import { fencingCases } from "./cases/fencing.ts";
import { handOverCases } from "./cases/hand-over.ts";
import { inspectionCases } from "./cases/inspection.ts";
import { keyCases } from "./cases/keys.ts";
import { leaseCases } from "./cases/lease.ts";
import { modeChangeCases } from "./cases/mode-change.ts";
import { ownershipCases } from "./cases/ownership.ts";
import { sharedCases } from "./cases/shared.ts";
import { waitingCases } from "./cases/waiting.ts";
import type {
  BackendAccess,
  CaseContext,
  CaseDefinition,
  ContractCase,
  StoreContractOptions,
} from "./contract-case.ts";

/**
 * The store contract as test cases, in the order of its rules. A store that passes them all can carry locks.
 *
 * Each case uses keys of its own that were never used before, so nothing has to be cleaned up and a backend may be
 * shared; only the empty key must be free. Run the cases one after the other: one of them sets the wall clock of this process wrong for a moment.
 */
export function storeContract(options: StoreContractOptions): readonly ContractCase[] {
  return DEFINITIONS.filter((definition) => applies(definition, options)).map(({ id, rule, title, check }) => ({
    id,
    rule,
    title,
    run: () => check(contextOf(options)),
  }));
}

function applies({ needs = [], claims = [], lacks }: CaseDefinition, options: StoreContractOptions): boolean {
  const claimed = options.claims ?? [];
  return (
    needs.every((name) => options[name] !== undefined) &&
    claims.every((capability) => claimed.includes(capability)) &&
    (lacks === undefined || !claimed.includes(lacks))
  );
}

const DEFINITIONS: readonly CaseDefinition[] = [
  ...ownershipCases,
  ...keyCases,
  ...backendCases,
  ...expiryCases,
  ...leaseCases,
  ...sharedCases,
  ...modeChangeCases,
  ...capabilityCases,
  ...fencingCases,
  ...inspectionCases,
  ...handOverCases,
  ...waitingCases,
].sort((one, other) => one.rule - other.rule);

const DEFAULT_SHORT_TTL_MS = 250;
const LONG_TTL_MS = 60_000;

function contextOf(options: StoreContractOptions): CaseContext {
  const [a, b] = options.stores();
  const clock = options.clock ?? systemClock;
  const elapse =
    options.elapse ?? ((ms: number) => new Promise<void>((resolve) => void systemClock.setTimer(ms, resolve)));
  return {
    a,
    b,
    claims: options.claims ?? [],
    mayRefuseAll: options.mayRefuseAll ?? false,
    clock,
    shortTtlMs: options.shortTtlMs ?? DEFAULT_SHORT_TTL_MS,
    longTtlMs: LONG_TTL_MS,
    // Only cases whose needs are all met get this far.
    backend: options as BackendAccess,
    elapse,
    lapse: (ttlMs) => elapse(ttlMs * 1.1 + 20),
  };
}
