import { existsSync, globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const docs = new URL("../../../docs/", import.meta.url);
const table = readFileSync(new URL("feature-table.md", docs), "utf8");

describe("the feature table", () => {
  it("names for each feature of ours a test that there is", () => {
    const dead: string[] = [];
    for (const [, path = "", title = ""] of table.matchAll(/\]\((\.\.\/\S+) "([^"]+)"\)/g)) {
      const file = new URL(path, docs);
      if (!existsSync(file) || !readFileSync(file, "utf8").includes(title)) dead.push(`${path}: ${title}`);
    }
    expect(dead).toEqual([]);
  });

  it("has an entry in its list of tests for each number, and no other", () => {
    const numbers = [...table.matchAll(/\[(\d+)\] \|/g)].map(([, number]) => Number(number));
    const listed = [...table.matchAll(/^(\d+)\. \[/gm)].map(([, number]) => Number(number));
    expect(numbers.length).toBeGreaterThan(25);
    expect(numbers).toEqual(listed);
  });

  it("says nothing of ours without a test but what we do not have", () => {
    const rows = table.split("\n").filter((line) => /^\| [^|\s]/.test(line) && line.split("|").length === 10);
    const unproven = rows.filter(
      (row) => !/\[\d+\] $/.test(row.split("|")[2] ?? "") && row.split("|")[2] !== " **–** ",
    );
    expect(rows.length).toBeGreaterThan(25);
    expect(unproven).toEqual([]);
  });
});

describe("the pages", () => {
  it("link to files that there are", () => {
    const pages = globSync("*.md", { cwd: fileURLToPath(docs) });
    const dead = pages.flatMap((page) =>
      [...readFileSync(new URL(page, docs), "utf8").matchAll(/\]\((?!https?:|#)([^)\s#]+)/g)]
        .map(([, path = ""]) => path)
        .filter((path) => !existsSync(new URL(path, docs)))
        .map((path) => `${page}: ${path}`),
    );
    expect(pages).toContain("migrate-from-redlock.md");
    expect(dead).toEqual([]);
  });
});
