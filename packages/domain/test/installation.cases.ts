import { expect, it } from "vitest";
import { installationId } from "../src/index.ts";
import { casesOn } from "./support/databases.ts";
import { inParallel } from "./support/errors.ts";

export const installationCases = casesOn("installationId", (database) => {
  it("gives all first callers the same id, and ever after", async () => {
    const ids = await Promise.all(inParallel(20, () => installationId(database().db)));
    expect(new Set(ids).size).toBe(1);
    expect(await installationId(database().db)).toBe(ids[0]);
  });
});
