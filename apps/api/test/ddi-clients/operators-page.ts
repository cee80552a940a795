import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { promisify } from "node:util";

const PAGE = resolve(import.meta.dirname, "../../../../docs/connect-ddi-devices.md");

/**
 * The contents of a file as the page gives it: the block that follows its name.
 *
 * @throws Error where the page has no such file.
 */
export function fileOfPage(name: string): string {
  const page = readFileSync(PAGE, "utf8");
  const at = page.indexOf(`\`${name}\``);
  const [, block] = at < 0 ? [] : (/```\w*\n(.*?)```/s.exec(page.slice(at)) ?? []);
  if (block === undefined) throw new Error(`${PAGE} gives no ${name}.`);
  return block;
}

/** Runs a script of the page to its end, with no more environment than PATH and what is given. */
export async function runScriptOfPage(
  name: string,
  { cwd, env }: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Promise<void> {
  await promisify(execFile)("bash", ["-c", fileOfPage(name)], { cwd, env: { PATH: process.env["PATH"], ...env } });
}
