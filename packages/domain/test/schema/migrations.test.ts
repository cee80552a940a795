import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { generateDrizzleJson, generateMigration } from "drizzle-kit/api";
import { describe, expect, it } from "vitest";
import { migrationsFolder, schema } from "../../src/index.ts";

describe("the migrations", () => {
  it("lead to the schema of the source: there is nothing left to generate", async () => {
    const folder = join(migrationsFolder, "meta");
    const newest = (await readdir(folder))
      .filter((name) => name.endsWith("_snapshot.json"))
      .sort()
      .at(-1);
    const snapshot = JSON.parse(await readFile(join(folder, newest ?? ""), "utf8"));
    expect(await generateMigration(snapshot, generateDrizzleJson(schema, snapshot.id))).toEqual([]);
  });
});
