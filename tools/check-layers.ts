/**
 * Proves that the layer rules can fail: plants violations of every rule in a temporary copy of the workspace and expects
 * each to be reported. A rule of .dependency-cruiser.cjs without a plant here is a failure too.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const require = createRequire(import.meta.url);

/** A file that breaks a rule of .dependency-cruiser.cjs. */
interface FilePlant {
  readonly rule: string;
  readonly file: string;
  readonly text: string;
}

const filePlants: readonly FilePlant[] = [
  plant("no-circular", "packages/lock-core/src/planted-circle.ts", 'import "./planted-circle.ts";'),
  plant(
    "core-depends-on-nothing",
    "packages/lock-core/src/planted-adapter.ts",
    'import "../../lock-redis/src/index.ts";',
  ),
  plant("core-depends-on-nothing", "packages/lock-core/src/planted-npm.ts", 'import "fast-check";'),
  plant(
    "lock-redis-only-core",
    "packages/lock-redis/src/planted-client.ts",
    'import { Redis } from "ioredis";\nnew Redis();',
  ),
  plant("lock-redis-only-core", "packages/lock-redis/src/planted-domain.ts", 'import "../../domain/src/index.ts";'),
  plant("domain-knows-no-driver", "packages/domain/src/planted-driver.ts", 'import "postgres";'),
  plant("domain-knows-no-driver", "packages/domain/src/planted-pglite.ts", 'import "@electric-sql/pglite";'),
  plant("domain-knows-no-driver", "packages/domain/src/planted-drizzle.ts", 'import "drizzle-orm/postgres-js";'),
  plant("domain-knows-no-driver", "packages/domain/src/planted-store.ts", 'import "../../lock-redis/src/index.ts";'),
  plant("packages-not-apps", "packages/domain/src/planted-app.ts", 'import "../../../apps/api/src/planted-deep.ts";'),
  plant("testkit-only-in-tests", "packages/lock-redis/src/planted-testkit.ts", 'import "@ota/testkit";'),
  plant("no-deep-imports", "apps/api/src/planted-deep.ts", 'import "../../../packages/lock-core/src/errors.ts";'),
  plant("no-unlisted", "packages/domain/src/planted-unlisted.ts", 'import "vite";'),
  plant("not-to-dev-dep", "packages/lock-redis/src/planted-dev.ts", 'import "vitest";'),
  plant("no-unresolvable", "packages/domain/src/planted-unresolvable.ts", 'import "no-such-package";'),
];

/** A change of one package that `turbo boundaries` must refuse, and the sentence it must say. */
interface PackagePlant {
  readonly packageDir: string;
  /** A package that is added to its dependencies. */
  readonly dependency?: string;
  /** The text of a file that is added to its sources. */
  readonly text?: string;
  readonly says: string;
}

const packagePlants: readonly PackagePlant[] = [
  dependencyPlant("packages/lock-core", "@ota/lock-redis"),
  dependencyPlant("packages/lock-core", "@ota/domain"),
  dependencyPlant("packages/lock-redis", "@ota/domain"),
  dependencyPlant("packages/domain", "@ota/lock-redis"),
  dependencyPlant("packages/domain", "@ota/api"),
  dependencyPlant("packages/testkit", "@ota/lock-core"),
  {
    packageDir: "packages/lock-core",
    text: 'import "ioredis";',
    says: "cannot import package `ioredis` because it is not a dependency",
  },
  {
    packageDir: "packages/lock-core",
    text: 'import "../../domain/src/index.ts";',
    says: "import `../../domain/src/index.ts` leaves the package",
  },
];

const copy = copyWorkspace();
const failures = [...checkFiles(), ...checkPackages()];
for (const failure of failures) console.error(`NOT CAUGHT: ${failure}`);
if (failures.length > 0) process.exit(1);
console.log(`${filePlants.length + packagePlants.length} planted violations, each caught`);

function plant(rule: string, file: string, text: string): FilePlant {
  return { rule, file, text };
}

function dependencyPlant(packageDir: string, dependency: string): PackagePlant {
  const { name } = JSON.parse(readFileSync(join(root, packageDir, "package.json"), "utf8"));
  const says = `Package \`${dependency}\` found without any tag listed in allowlist for \`${name}\``;
  return { packageDir, dependency, says };
}

function copyWorkspace(): string {
  const target = mkdtempSync(join(tmpdir(), "ota-layers-"));
  process.on("exit", () => rmSync(target, { recursive: true, force: true }));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(1));
  for (const name of ["packages", "apps"]) {
    cpSync(join(root, name), join(target, name), {
      recursive: true,
      verbatimSymlinks: true, // the packages' links to each other are relative, and lead to the copies
      filter: (path) => !["dist", ".turbo", ".pack", ".data"].includes(basename(path)),
    });
  }
  const files = ["package.json", "pnpm-workspace.yaml", "pnpm-lock.yaml", "turbo.json"];
  for (const name of [...files, "tsconfig.json", "tsconfig.base.json", ".dependency-cruiser.cjs"]) {
    cpSync(join(root, name), join(target, name));
  }
  symlinkSync(join(root, "node_modules"), join(target, "node_modules"));
  return target;
}

function checkFiles(): string[] {
  for (const { file, text } of filePlants) writeFileSync(join(copy, file), `${text}\n`);
  const config = ".dependency-cruiser.cjs";
  const cruiser = join(root, "node_modules/.bin/depcruise");
  const { stdout, stderr, status } = run(cruiser, ["--config", config, "--output-type", "json", "packages", "apps"]);
  for (const { file } of filePlants) rmSync(join(copy, file));
  if (!stdout.startsWith("{")) throw new Error(`dependency-cruiser failed (${status}):\n${stdout}${stderr}`);

  const { violations } = JSON.parse(stdout).summary as { violations: { from: string; rule: { name: string } }[] };
  const missed = filePlants.filter(
    ({ rule, file }) => !violations.some((each) => each.from === file && each.rule.name === rule),
  );
  const { forbidden } = require(join(root, config)) as { forbidden: { name: string }[] };
  const unplanted = forbidden.filter(({ name }) => !filePlants.some(({ rule }) => rule === name));
  return [
    ...missed.map(({ rule, file }) => `${rule} by ${file}`),
    ...unplanted.map(({ name }) => `${name}: no violation is planted for it`),
  ];
}

function checkPackages(): string[] {
  const turbo = join(root, "node_modules/.bin/turbo");
  return packagePlants.flatMap(({ packageDir, dependency, text, says }) => {
    const manifestPath = join(copy, packageDir, "package.json");
    const manifest = readFileSync(manifestPath, "utf8");
    const sourcePath = join(copy, packageDir, "src/planted.ts");
    if (dependency !== undefined) {
      const changed = JSON.parse(manifest);
      changed.dependencies = { ...changed.dependencies, [dependency]: "workspace:*" };
      writeFileSync(manifestPath, JSON.stringify(changed));
    }
    if (text !== undefined) writeFileSync(sourcePath, text);
    const { status, stdout, stderr } = run(turbo, ["boundaries"]);
    writeFileSync(manifestPath, manifest);
    rmSync(sourcePath, { force: true });
    // turbo breaks its lines anywhere, and draws a bar before what follows
    const bare = (words: string) => words.replace(/[\s|]/g, "");
    return status !== 0 && bare(stdout + stderr).includes(bare(says)) ? [] : [says];
  });
}

function run(file: string, args: readonly string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(file, args, { cwd: copy, encoding: "utf8", maxBuffer: 1 << 28 });
}
