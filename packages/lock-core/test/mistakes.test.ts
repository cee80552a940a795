import { type ContractCase, ManualClock, storeContract } from "@ota/lock-core/testing";
import { describe, expect, test } from "vitest";
import { backendMistakes } from "./mistakes/backend.ts";
import { expiryMistakes } from "./mistakes/expiry.ts";
import { keyMistakes } from "./mistakes/keys.ts";
import type { Mistake } from "./mistakes/mistake.ts";
import { ownershipMistakes } from "./mistakes/ownership.ts";
import { PlainBackend, PlainStore } from "./mistakes/plain-store.ts";

const mistakes = [...ownershipMistakes, ...keyMistakes, ...expiryMistakes, ...backendMistakes];

describe("the store contract", () => {
  test("finds nothing wrong with a correct store", async () => {
    expect(await failingCases(PlainStore)).toEqual([]);
  });

  for (const { name, Store, caughtBy } of mistakes) {
    test(`catches this mistake by exactly the predicted cases: ${name}`, async () => {
      expect((await failingCases(Store)).sort()).toEqual([...caughtBy].sort());
    });
  }

  test("has no case that no mistake can fail", () => {
    const caught = new Set(mistakes.flatMap(({ caughtBy }) => caughtBy));
    const idle = contractOf(PlainStore).filter(({ id }) => !caught.has(id));
    expect(idle.map(({ id }) => id)).toEqual([]);
  });

  test("has ids and titles that are unique", () => {
    const cases = contractOf(PlainStore);
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
  const stores = [new Store(backend), new Store(backend)] as const;
  return storeContract({
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

/** Runs each case on a backend of its own, so that one mistake is seen once, and gives the ids of those that failed. */
async function failingCases(Store: Mistake["Store"]): Promise<string[]> {
  const failed: string[] = [];
  for (const index of contractOf(Store).keys()) {
    const { id, run } = contractOf(Store)[index] as ContractCase;
    await run().catch(() => failed.push(id));
  }
  return failed;
}

function contractPage(): string {
  const cases = contractOf(PlainStore);
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
