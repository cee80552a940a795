/**
 * A dry run of a release: applies the pending changesets in a temporary clone and expects new versions and changelogs.
 * Fails when a changeset names an unknown package, or when none is pending for a package that was never released.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const neverReleased = "0.0.0";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
}

const clone = mkdtempSync(join(tmpdir(), "ota-release-"));
process.on("exit", () => rmSync(clone, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(1));

execFileSync("git", ["clone", "--quiet", root, clone], { stdio: "inherit" });
// What is being worked on counts, not only what is committed.
rmSync(join(clone, ".changeset"), { recursive: true });
cpSync(join(root, ".changeset"), join(clone, ".changeset"), { recursive: true });
for (const file of globSync("{packages,apps}/*/package.json", { cwd: root }))
  cpSync(join(root, file), join(clone, file));
symlinkSync(join(root, "node_modules"), join(clone, "node_modules"));
const isPending = globSync(".changeset/*.md", { cwd: root }).some((file) => basename(file) !== "README.md");
if (isPending) applyChangesets();

const failures: string[] = [];
for (const file of globSync("packages/*/package.json", { cwd: root }).sort()) {
  const before = read(join(root, file));
  const after = read(join(clone, file));
  if (before.private) continue;
  console.log(`${before.name} ${before.version} -> ${after.version === before.version ? "no release" : after.version}`);
  if (after.version === neverReleased)
    failures.push(`${before.name} was never released and has no changeset: pnpm changeset`);
  const changelog = join(clone, file, "../CHANGELOG.md");
  const isWritten =
    after.version === before.version || readFileSync(changelog, "utf8").includes(`## ${after.version}\n`);
  if (!isWritten) failures.push(`the changelog of ${before.name} lacks ${after.version}`);
}
for (const failure of failures) console.error(failure);
if (failures.length > 0) process.exit(1);

function applyChangesets(): void {
  const changeset = join(root, "node_modules/.bin/changeset");
  const { status, stdout, stderr } = spawnSync(changeset, ["version"], { cwd: clone, encoding: "utf8" });
  if (status === 0) return;
  console.error(`changeset version exited with ${status}:\n${stdout}${stderr}`);
  process.exit(1);
}

function read(path: string): Manifest {
  return JSON.parse(readFileSync(path, "utf8"));
}
