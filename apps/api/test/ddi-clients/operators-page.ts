import { readFileSync } from "node:fs";
import { resolve } from "node:path";

const PAGE = resolve(import.meta.dirname, "../../../../docs/connect-ddi-devices.md");

/** The page by which operators connect DDI devices. */
export function operatorsPage(): string {
  return readFileSync(PAGE, "utf8");
}

/**
 * The contents of a file as the page gives it: the block that follows its name.
 *
 * @throws Error where the page has no such file.
 */
export function fileOfPage(name: string): string {
  const page = operatorsPage();
  const at = page.indexOf(`\`${name}\``);
  const [, block] = at < 0 ? [] : (/```\w*\n(.*?)```/s.exec(page.slice(at)) ?? []);
  if (block === undefined) throw new Error(`${PAGE} gives no ${name}.`);
  return block;
}
