import { existsSync, readFileSync } from "node:fs";
import { glob } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const CASES = 37;

const docs = fileURLToPath(new URL("../../../../docs", import.meta.url));
const page = readFileSync(join(docs, "ota-cases.md"), "utf8");
const rows = page.split("\n").filter((line) => /^\| \d+ \|/.test(line));
const tests = rows.flatMap((row) =>
  [...row.matchAll(/\[([^\]]+)\]\((\S+) "([^"]+)"\)/g)].map(([, name = "", path = "", title = ""]) => ({
    name,
    file: join(docs, path),
    title,
  })),
);

describe("the page of other servers' faults", () => {
  test("has every case, in order", () => {
    expect(rows.map((row) => Number(row.split("|")[1]))).toEqual(
      Array.from({ length: CASES }, (_, index) => index + 1),
    );
  });

  test("names for each case a test by a title that there is", () => {
    expect(rows.filter((row) => !/\.ts "[^"]+"\)/.test(row))).toEqual([]);
    const dead = tests.filter(({ file, title }) => {
      if (!existsSync(file)) return true;
      // As the title of a test or of a case, in whole: a comment that mentions it proves nothing.
      const titles = [...readFileSync(file, "utf8").matchAll(/"((?:[^"\\\n]|\\.)+)"|`([^`]+)`/g)];
      return !titles.some(([, quoted, template]) => (quoted ?? template) === title);
    });
    expect(dead.map(({ file, title }) => `${file}: ${title}`)).toEqual([]);
    expect(tests.filter(({ name, file }) => basename(file) !== name)).toEqual([]);
  });

  test("names only files that every run of the tests runs", async () => {
    const sources = new Map<string, string>();
    for await (const file of glob("{packages,apps}/*/test/**/*.ts", { cwd: dirname(docs) })) {
      sources.set(join(dirname(docs), file), readFileSync(join(dirname(docs), file), "utf8"));
    }
    const isRun = (file: string): boolean =>
      file.endsWith(".test.ts") ||
      [...sources].some(([from, text]) => from !== file && text.includes(`/${basename(file)}"`) && isRun(from));
    const files = new Set(tests.map(({ file }) => file));
    expect([...files].filter((file) => !isRun(file))).toEqual([]);
    expect(files.size).toBeGreaterThan(25);
  });
});
