/**
 * Writes the reference pages of the published packages, docs/api/<package>.md, from their doc comments. With `--check` it
 * writes nothing and fails when a page is not what the sources say.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");
const PACKAGES = ["lock-core", "lock-redis"];
const check = process.argv.includes("--check");

const folder = mkdtempSync(join(tmpdir(), "ota-api-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const stale = PACKAGES.filter((name) => {
  const page = join(root, "docs/api", `${name}.md`);
  const text = pageOf(name);
  if (check) return text !== readFileSync(page, "utf8");
  mkdirSync(join(root, "docs/api"), { recursive: true });
  writeFileSync(page, text);
  console.log(`wrote docs/api/${name}.md`);
  return false;
});
for (const name of stale) console.error(`docs/api/${name}.md is not what the sources say: pnpm api-reference`);
if (stale.length > 0) process.exit(1);

function pageOf(name: string): string {
  const out = join(folder, name);
  const tsconfig = join(folder, `${name}.json`);
  const entry = join(root, "packages", name, "src/index.ts");
  const compilerOptions = { typeRoots: [join(root, "node_modules/@types")] };
  writeFileSync(
    tsconfig,
    JSON.stringify({ extends: join(root, "tsconfig.json"), compilerOptions, files: [entry], include: [] }),
  );
  const options = {
    plugin: ["typedoc-plugin-markdown"],
    ...{ tsconfig, out, entryPoints: [entry], name: `@ota/${name}`, readme: "none" },
    ...{ outputFileStrategy: "modules", entryFileName: "page", hidePageHeader: true, hideBreadcrumbs: true },
    ...{ disableSources: true, excludePrivate: true, parametersFormat: "table", logLevel: "Error" },
  };
  const optionsFile = join(folder, `${name}.options.json`);
  writeFileSync(optionsFile, JSON.stringify(options));
  execFileSync(join(import.meta.dirname, "node_modules/.bin/typedoc"), ["--options", optionsFile], {
    cwd: import.meta.dirname,
    stdio: "inherit",
  });
  return readFileSync(join(out, "page.md"), "utf8");
}
