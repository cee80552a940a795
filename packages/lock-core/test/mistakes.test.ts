import { type LockStore, MemoryState, MemoryStore } from "@ota/lock-core";
import { type ContractCase, ManualClock, type StoreContractOptions, storeContract } from "@ota/lock-core/testing";
import { describe, expect, test } from "vitest";
import { backendMistakes } from "./mistakes/backend.ts";
import { capabilityMistakes, lackMistakes } from "./mistakes/capabilities.ts";
import { expiryMistakes } from "./mistakes/expiry.ts";
import { fencingMistakes } from "./mistakes/fencing.ts";
import { FullBackend, FullStore } from "./mistakes/full-store.ts";
import { inspectionMistakes } from "./mistakes/inspection.ts";
import { keyMistakes } from "./mistakes/keys.ts";
import type { FullMistake, Mistake } from "./mistakes/mistake.ts";
import { modeChangeMistakes } from "./mistakes/mode-change.ts";
import { ownershipMistakes } from "./mistakes/ownership.ts";
import { PlainBackend, PlainStore } from "./mistakes/plain-store.ts";
import { sharedMistakes } from "./mistakes/shared.ts";
import { type WaitMistake, waitMistakes } from "./mistakes/waiting.ts";

type Contract = () => readonly ContractCase[];

const plainMistakes = [
  ...ownershipMistakes,
  ...keyMistakes,
  ...expiryMistakes,
  ...backendMistakes,
  ...lackMistakes,
].map(({ name, Store, caughtBy }) => ({ name, contract: () => contractOf(Store), caughtBy }));
const fullMistakes = [
  ...sharedMistakes,
  ...modeChangeMistakes,
  ...fencingMistakes,
  ...inspectionMistakes,
  ...capabilityMistakes,
].map(({ name, Store, caughtBy }) => ({ name, contract: () => fullContractOf(Store), caughtBy }));
const lineMistakes = waitMistakes.map(({ name, Store, caughtBy }) => ({
  name,
  contract: () => waitContractOf(Store),
  caughtBy,
}));
const mistakes = [...plainMistakes, ...fullMistakes, ...lineMistakes];

describe("the store contract", () => {
  test("finds nothing wrong with a correct store, with or without capabilities", async () => {
    expect(await failingCases(() => contractOf(PlainStore))).toEqual([]);
    expect(await failingCases(() => fullContractOf(FullStore))).toEqual([]);
    expect(await failingCases(() => waitContractOf(MemoryStore))).toEqual([]);
  });

  for (const { name, contract, caughtBy } of mistakes) {
    test(`catches this mistake by exactly the predicted cases: ${name}`, async () => {
      expect((await failingCases(contract)).sort()).toEqual([...caughtBy].sort());
    });
  }

  test("has no case that no mistake can fail", () => {
    const caught = new Set(mistakes.flatMap(({ caughtBy }) => caughtBy));
    const idle = allCases().filter(({ id }) => !caught.has(id));
    expect(idle.map(({ id }) => id)).toEqual([]);
  });

  test("has ids and titles that are unique", () => {
    const cases = allCases();
    expect(new Set(cases.map(({ id }) => id)).size).toBe(cases.length);
    expect(new Set(cases.map(({ title }) => title)).size).toBe(cases.length);
  });

  test("lists the mistakes that it catches in docs/contract.md", async () => {
    await expect(contractPage()).toMatchFileSnapshot("../docs/contract.md");
  });
});

function contractOf(Store: Mistake["Store"]) {
  const clock = new ManualClock();
  const backend = new PlainBackend(clock);
  return contractOver([new Store(backend), new Store(backend)], { backend });
}

function fullContractOf(Store: FullMistake["Store"]) {
  const clock = new ManualClock();
  const backend = new FullBackend(clock);
  return contractOver([new Store(backend), new Store(backend)], {
    backend,
    claims: ["shared", "fencing", "inspection"],
    loseTokens: (key) => backend.loseTokens(key),
  });
}

/** The cases about waiting alone: the rest of these stores is MemoryStore's. */
function waitContractOf(Store: WaitMistake["Store"]) {
  const clock = new ManualClock();
  const state = new MemoryState({ clock });
  const stores = [new Store({ state }), new Store({ state })] as const;
  const cases = storeContract({
    stores: () => stores,
    claims: ["waiting"],
    clock,
    elapse: (ms) => clock.advance(ms),
    contents: async (key) => {
      const { holders } = await new MemoryStore({ state }).inspect({ key });
      return holders.map(({ remainingMs }) => clock.now() + remainingMs);
    },
  });
  return cases.filter(({ rule }) => rule === 30);
}

function contractOver(
  stores: readonly [LockStore, LockStore],
  { backend, ...options }: Partial<StoreContractOptions> & { readonly backend: PlainBackend | FullBackend },
) {
  const { clock } = backend;
  return storeContract({
    ...options,
    stores: () => stores,
    clock,
    elapse: (ms) => clock.advance(ms),
    plantString: (key) => backend.plantString(key),
    plantOther: (key) => backend.plantOther(key),
    contents: (key) => backend.contents(key),
    lifetimeMs: (key) => backend.lifetimeMs(key),
    breakBackend: () => backend.breakBackend(),
  });
}

/** Every case, of stores with capabilities and of stores without. */
function allCases(): readonly ContractCase[] {
  const full = fullContractOf(FullStore);
  const ids = new Set(full.map(({ id }) => id));
  const others = [...contractOf(PlainStore), ...waitContractOf(MemoryStore)].filter(({ id }) => !ids.has(id));
  return [...full, ...others].sort((one, other) => one.rule - other.rule);
}

/** Runs each case on a backend of its own, so that one mistake is seen once, and gives the ids of those that failed. */
async function failingCases(contract: Contract): Promise<string[]> {
  const failed: string[] = [];
  for (const index of contract().keys()) {
    const { id, run } = contract()[index] as ContractCase;
    await run().catch(() => failed.push(id));
  }
  return failed;
}

function contractPage(): string {
  const cases = allCases();
  return [
    "# The store contract, case by case",
    "",
    "Written by `test/mistakes.test.ts`; do not edit.",
    "",
    `## The ${cases.length} cases`,
    "",
    "| rule | case | what is guaranteed |",
    "|---|---|---|",
    ...cases.map(({ rule, id, title }) => `| ${rule} | \`${id}\` | ${title} |`),
    "",
    `## ${mistakes.length} stores with one mistake each, and what catches them`,
    "",
    "| mistake | caught by |",
    "|---|---|",
    ...mistakes.map(({ name, caughtBy }) => `| ${name} | ${caughtBy.map((id) => `\`${id}\``).join(", ")} |`),
    "",
  ].join("\n");
}
