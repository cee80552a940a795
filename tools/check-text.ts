/**
 * Looks through every file that git would commit for what must not be published: the host of a package registry
 * (the one this machine installs from, too) and paths of somebody's machine.
 */
import { execFileSync } from "node:child_process";
import { existsSync, lstatSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");

interface Rule {
  readonly what: string;
  /** A string is in lower case and matches without regard to case. */
  readonly pattern: RegExp | string;
}

const rules: readonly Rule[] = [
  { what: "a registry's host", pattern: /\bregistry\.[a-z0-9-]+\.[a-z]{2,}|\bnpmjs\.(?:org|com)|\bnpmmirror\.com/i },
  { what: "the registry of this machine", pattern: ownRegistryHost() },
  { what: "a download address in the lockfile", pattern: /\btarball: ?['"]?https?:/ },
  { what: "a path of one machine", pattern: /(?<![\w.@~)}>-])\/(?:work|home|root|Users)\/[\w.-]+/ },
  { what: "a path of one machine", pattern: /\b[A-Z]:\\+Users\\+\w/ },
];

const files = git("ls-files", "--cached", "--others", "--exclude-standard", "-z").split("\0").filter(isText);
const findings = files.flatMap(check);
for (const finding of findings) console.error(finding);
if (findings.length > 0) process.exit(1);
console.log(`${files.length} files name no registry host and no local path`);

function check(file: string): string[] {
  const lines = readFileSync(join(root, file), "utf8").split("\n");
  return lines.flatMap((line, index) =>
    rules.filter(({ pattern }) => finds(pattern, line)).map(({ what }) => `${file}:${index + 1}: ${what}`),
  );
}

function finds(pattern: RegExp | string, line: string): boolean {
  return typeof pattern === "string" ? line.toLowerCase().includes(pattern) : pattern.test(line);
}

function isText(file: string): boolean {
  const path = join(root, file);
  if (file === "" || !existsSync(path) || !lstatSync(path).isFile()) return false;
  return !readFileSync(path).subarray(0, 8000).includes(0);
}

function ownRegistryHost(): string {
  const address = execFileSync("npm", ["config", "get", "registry"], { encoding: "utf8" });
  return new URL(address.trim()).host;
}

function git(...args: string[]): string {
  return execFileSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 26 });
}
