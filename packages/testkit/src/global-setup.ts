import { randomBytes } from "node:crypto";
import type { TestProject } from "vitest/node";
import { hasPostgres, hasPostgresBinaries, hasRedis, hasSwupdate } from "./binaries.ts";
import { clusterDirectory, initCluster } from "./postgres-cluster.ts";
import { startPostgresFrom } from "./postgres-server.ts";
import { dropDatabases } from "./sql.ts";

/**
 * Vitest's global setup: starts the PostgreSQL server that `createTestDatabase` uses, or takes that of
 * `TEST_DATABASE_URL`, and drops the run's databases at the end. Where a server or swupdate is not installed, says loudly which
 * tests are skipped.
 * @throws Error where one of them is not installed and `CI` is "true": there, nothing may be skipped silently.
 */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  reportMissing();
  if (!hasPostgres) {
    project.provide("postgres", undefined);
    return undefined;
  }
  const template = hasPostgresBinaries ? await clusterDirectory() : undefined;
  if (template !== undefined) await initCluster(template);

  const given = process.env["TEST_DATABASE_URL"];
  const started = given || template === undefined ? undefined : await startPostgresFrom({ template });
  const serverUrl = given || started?.url() || "";
  const databasePrefix = `ota_test_${randomBytes(4).toString("hex")}_`;
  project.provide("postgres", { serverUrl, databasePrefix, template });
  return async () => {
    if (started === undefined) await dropDatabases(serverUrl, databasePrefix);
    else await started.stop();
  };
}

function reportMissing(): void {
  const missing = [
    ...(hasRedis ? [] : ["redis-server"]),
    ...(hasPostgres ? [] : ["PostgreSQL"]),
    ...(hasSwupdate ? [] : ["swupdate with cpio and openssl"]),
  ];
  if (missing.length === 0) return;
  const packages = "redis-server postgresql swupdate cpio openssl";
  const message = `${missing.join(" and ")} not found, so tests are SKIPPED: apt-get install -y ${packages}`;
  if (process.env["CI"] === "true") throw new Error(message);
  console.warn(`\n!!! ${message}\n`);
}
