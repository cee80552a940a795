/**
 * Runs every `packages/<name>/examples/*.ts` and expects it to end well, and compares the READMEs with them: each block
 * of TypeScript in a package's README consists of consecutive lines of one of its examples. Where a comment
 * `<!-- example: examples/<file>.ts -->` stands above the block, it is that whole file.
 * In the pages of the docs folders each block of TypeScript consists of consecutive lines of the file that the comment
 * `<!-- from: <path from the root> -->` above it names: one of those examples, or a file that the tests run.
 * An example that reads REDIS_URL or DATABASE_URL gets a server of its own.
 */
import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { startPostgres, startRedis } from "../packages/testkit/src/index.ts";

const root = resolve(import.meta.dirname, "..");
const exampleTimeoutMs = 60_000;

const examples = globSync("packages/*/examples/*.ts", { cwd: root }).sort();
const readmes = globSync("packages/*/README.md", { cwd: root }).sort();
const pages = globSync(["docs/*.md", "packages/*/docs/*.md"], { cwd: root }).sort();
const failures = [...readmes.flatMap(checkReadme), ...pages.flatMap(checkPage)];
for (const example of examples) failures.push(...(await runExample(example)));
for (const failure of failures) console.error(failure);
if (failures.length > 0) process.exit(1);
console.log(
  `${examples.length} examples ran, ${readmes.length} package READMEs and ${pages.length} pages agree with them`,
);

async function runExample(example: string): Promise<string[]> {
  const source = readFileSync(join(root, example), "utf8");
  await using servers = new AsyncDisposableStack();
  const env: NodeJS.ProcessEnv = { ...process.env };
  if (source.includes("REDIS_URL")) env["REDIS_URL"] = servers.use(await startRedis()).url;
  if (source.includes("DATABASE_URL")) env["DATABASE_URL"] = await servers.use(await startPostgres()).createDatabase();
  const result = spawnSync(process.execPath, ["--conditions=@ota/source", join(root, example)], {
    cwd: dirname(join(root, example)),
    env,
    encoding: "utf8",
    timeout: exampleTimeoutMs,
  });
  if (result.status === 0) return [];
  const how = result.signal
    ? `was ended by ${result.signal} after ${exampleTimeoutMs} ms`
    : `exited with ${result.status}`;
  return [`${example} ${how}:\n${result.stdout}${result.stderr}`];
}

function checkReadme(readme: string): string[] {
  const text = readFileSync(join(root, readme), "utf8");
  const own = examples.filter((example) => dirname(example) === join(dirname(readme), "examples"));
  const blocks = text.matchAll(
    /(?:<!-- (?:example: )?(?<file>examples\/\S+) -->\s*)?^```(?:ts|typescript)\b.*\n(?<code>[\s\S]*?)^```/gm,
  );
  return [...blocks].flatMap(({ index, groups }) => {
    const where = `${readme}:${text.slice(0, index).split("\n").length}`;
    const code = lines(groups?.["code"] ?? "");
    const file = groups?.["file"];
    if (file === undefined) {
      const isShown = own.some((example) => lines(readFileSync(join(root, example), "utf8")).includes(code));
      return isShown ? [] : [`${where}: these lines are in no example of the package`];
    }
    const path = join(dirname(readme), file);
    if (!own.includes(path)) return [`${where}: there is no example ${path}`];
    return lines(readFileSync(join(root, path), "utf8")) === code ? [] : [`${where}: differs from ${path}`];
  });
}

function checkPage(page: string): string[] {
  const text = readFileSync(join(root, page), "utf8");
  const blocks = text.matchAll(/(?:<!-- from: (?<file>\S+) -->\s*)?^```(?:ts|typescript)\b.*\n(?<code>[\s\S]*?)^```/gm);
  return [...blocks].flatMap(({ index, groups }) => {
    const where = `${page}:${text.slice(0, index).split("\n").length}`;
    const file = groups?.["file"];
    if (file === undefined) return [`${where}: no comment says which file these lines are from`];
    if (!existsSync(join(root, file))) return [`${where}: there is no file ${file}`];
    const isShown = lines(readFileSync(join(root, file), "utf8")).includes(lines(groups?.["code"] ?? ""));
    return isShown ? [] : [`${where}: these lines are not in ${file}`];
  });
}

/** The lines without their indentation, which an excerpt need not keep, each with its line break on both sides. */
function lines(text: string): string {
  return `\n${text.trim().replace(/^[ \t]+|[ \t]+$/gm, "")}\n`;
}
