import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";

const folder = new URL("../examples/", import.meta.url);
const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const examples = readdirSync(folder).filter((name) => name.endsWith(".ts"));

describe("the README", () => {
  test("shows every example, word for word", () => {
    expect(examples.length).toBeGreaterThan(0);
    const shown = [...readme.matchAll(/<!-- examples\/(\S+) -->\n+```ts\n(.*?)```/gs)].map(([, name, code]) => [
      name,
      code,
    ]);
    const written = examples.map((name) => [name, readFileSync(new URL(name, folder), "utf8")]);
    expect(shown.sort()).toEqual(written.sort());
  });

  test("has no code besides the examples", () => {
    const blocks = [...readme.matchAll(/^```(?:ts|js|typescript|javascript)$/gm)];
    expect(blocks).toHaveLength(examples.length);
  });
});

describe("each example", () => {
  for (const name of examples) {
    test(`runs: ${name}`, async () => {
      const file = fileURLToPath(new URL(name, folder));
      const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--conditions=@ota/source", file]);
      expect({ name, stderr: stderr.replaceAll(/^.*ExperimentalWarning.*\n(\(Use.*\n)?/gm, "") }).toEqual({
        name,
        stderr: "",
      });
      expect(stdout).not.toBe("");
    });
  }
});
