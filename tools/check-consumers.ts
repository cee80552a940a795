/**
 * Installs the packed packages into a project of their own, compiles it with each supported TypeScript (without
 * @types/node, without skipLibCheck) and runs it on each supported Node, as ESM and by require.
 *
 * Needs the tarballs that `pnpm check:packages` packs. Says how large each package is and what it brings along, and
 * fails where one has outgrown its limit.
 */
import { execFileSync } from "node:child_process";
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const TYPESCRIPT = ["5.9.3", "6.0.3", "7.0.2"];
const NODE = ["22.23.5", "24.22.3", "26.12.1"];
const RESOLUTIONS = [
  ["nodenext", "nodenext"],
  ["esnext", "bundler"],
] as const;

/** Tarball and runtime code, in KiB: room for a few features, not for a mistake. */
const LIMITS = {
  "lock-core": { tarballKiB: 200, codeKiB: 130 },
  "lock-redis": { tarballKiB: 100, codeKiB: 120 },
} as const;
const packages = Object.keys(LIMITS) as (keyof typeof LIMITS)[];

const folder = mkdtempSync(join(tmpdir(), "ota-consumer-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(1));

const tarballs = Object.fromEntries(
  packages.map((name) => [`@ota/${name}`, `file:${join(root, "packages", name, ".pack", `${name}.tgz`)}`]),
);
const failures: string[] = [];
install();
for (const name of packages) checkSize(name);
for (const version of TYPESCRIPT) for (const resolution of RESOLUTIONS) compile(version, resolution);
for (const version of NODE) for (const file of ["run.mjs", "run.cjs"]) run(version, file);
for (const failure of failures) console.error(failure);
if (failures.length > 0) process.exit(1);

function install(): void {
  const platform = `${process.platform}-${process.arch}`;
  const aliases = {
    ...Object.fromEntries(TYPESCRIPT.map((version) => [`typescript-${version}`, `npm:typescript@${version}`])),
    ...Object.fromEntries(NODE.map((version) => [`node-${version}`, `npm:node-${platform}@${version}`])),
  };
  const manifest = { name: "consumer", private: true, type: "module", dependencies: { ...tarballs, ...aliases } };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  // The packages are not in a registry yet, and ioredis is the user's to choose.
  const workspace = { overrides: tarballs, autoInstallPeers: false, allowBuilds: {} };
  writeFileSync(join(folder, "pnpm-workspace.yaml"), JSON.stringify(workspace));
  cpSync(join(import.meta.dirname, "consumer"), folder, { recursive: true });
  execFileSync("pnpm", ["install", "--reporter=silent"], { cwd: folder, stdio: "inherit" });
}

function checkSize(name: keyof typeof LIMITS): void {
  const installed = join(folder, "node_modules/@ota", name);
  const tarballKiB = statSync(join(root, "packages", name, ".pack", `${name}.tgz`)).size / 1024;
  const code = globSync("dist/**/*.js", { cwd: installed }).filter((file) => !file.includes("testing"));
  const codeKiB = code.reduce((sum, file) => sum + statSync(join(installed, file)).size, 0) / 1024;
  const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  const dependencies = Object.keys(manifest.dependencies ?? {});
  console.log(
    `@ota/${name}: tarball ${tarballKiB.toFixed(0)} KiB, code ${codeKiB.toFixed(0)} KiB, ` +
      `${dependencies.length} dependencies${dependencies.length > 0 ? ` (${dependencies.join(", ")})` : ""}`,
  );
  const limit = LIMITS[name];
  if (tarballKiB > limit.tarballKiB || codeKiB > limit.codeKiB) {
    failures.push(`@ota/${name} has outgrown ${limit.tarballKiB} KiB packed or ${limit.codeKiB} KiB of code`);
  }
}

function compile(version: string, [module, moduleResolution]: readonly [string, string]): void {
  const compilerOptions = {
    ...{ noEmit: true, strict: true, exactOptionalPropertyTypes: true, target: "es2022", lib: ["es2022"], types: [] },
    ...{ module, moduleResolution },
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["consumer.ts"] }));
  const tsc = join(folder, `node_modules/typescript-${version}/bin/tsc`);
  attempt(`TypeScript ${version}, ${moduleResolution}`, process.execPath, [tsc, "-p", folder]);
}

function run(version: string, file: string): void {
  attempt(`Node ${version}, ${file}`, join(folder, `node_modules/node-${version}/bin/node`), [file]);
}

function attempt(title: string, command: string, args: readonly string[]): void {
  try {
    execFileSync(command, args, { cwd: folder, encoding: "utf8", stdio: "pipe" });
    console.log(`ok: ${title}`);
  } catch (error) {
    const { stdout, stderr } = error as { readonly stdout?: string; readonly stderr?: string };
    failures.push(`failed: ${title}\n${stdout ?? ""}${stderr ?? String(error)}`);
  }
}
