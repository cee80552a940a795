import { describe, expect, it } from "vitest";
import { decideUpdate } from "../../src/decide/decide-update.ts";
import { CASES } from "./cases/all.ts";
import { describeDecision, factsOfCase } from "./facts-of-case.ts";

describe.each(CASES)("decideUpdate: %s", (_topic, cases) => {
  it.each(cases)("$title", (given) => {
    const facts = factsOfCase(given);
    expect(describeDecision(decideUpdate(facts), facts)).toBe(given.expect);
  });
});
