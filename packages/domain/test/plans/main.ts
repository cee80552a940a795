import { hasPostgresBinaries, startPostgres } from "@ota/testkit";
import postgres from "postgres";
import { checkWorks, problemsOf } from "./check-works.ts";
import { migrateToNewest } from "./first-schema.ts";
import { type FleetSize, fillFleet } from "./fleet-data.ts";
import { openDatabase, type WorkDatabase } from "./open-database.ts";
import { HELP, type PlansOptions, readOptions } from "./options.ts";
import { migrationText, reportText, type TimedWork } from "./report.ts";
import { timeWork } from "./time-works.ts";
import { WORKS } from "./works.ts";

/** What a PostgreSQL for so many devices would be given. What is filled need not survive, and is analysed by hand. */
const SETTINGS = {
  ...{ shared_buffers: "2GB", max_wal_size: "16GB", checkpoint_timeout: "30min" },
  ...{ wal_level: "minimal", max_wal_senders: "0", autovacuum: "off" },
};

const options = readOptions(process.argv.slice(2));
if (options === "help") console.log(HELP);
else if (options.server !== undefined) process.exitCode = await main(options, options.server);
else if (!hasPostgresBinaries) {
  console.error("There is no PostgreSQL: apt-get install -y postgresql, or give one by --server.");
  process.exitCode = 2;
} else {
  await using server = await startPostgres({ settings: SETTINGS });
  process.exitCode = await main(options, server.url());
}

/** Gives the exit code. */
async function main({ sizes, runs, only = "" }: PlansOptions, serverUrl: string): Promise<number> {
  const migrations: string[] = [];
  const databases: WorkDatabase[] = [];
  const timed: TimedWork[] = [];
  try {
    for (const size of sizes) {
      const { url, migration } = await filledDatabase(serverUrl, size);
      if (migration !== undefined) migrations.push(migration);
      databases.push(await openDatabase(url, size));
    }
    const [largest] = databases.slice(-1);
    if (largest === undefined) throw new Error("there is no size");
    for (const work of WORKS.filter(({ name }) => name.includes(only))) {
      progress(work.name);
      const [checked] = await checkWorks(largest, [work]);
      if (checked === undefined) throw new Error(`${work.name} was not checked`);
      const costs = await timeWork(work, { databases, runs });
      for (const database of databases) {
        // So that the next work begins with nothing that this one has left.
        await database.checks.close();
        database.takeStatements();
      }
      timed.push({ work, statements: checked.statements, costs, problems: problemsOf(checked) });
    }
  } finally {
    for (const database of databases) await database.close();
  }
  const problems = timed.flatMap((work) => work.problems);
  console.log(["", ...migrations, "", reportText(timed, sizes), "", ...problems].join("\n"));
  return problems.length === 0 ? 0 : 1;
}

async function filledDatabase(
  serverUrl: string,
  size: FleetSize,
): Promise<{ readonly url: string; readonly migration: string | undefined }> {
  const name = `ota_plans_${size.devices}_${size.recordsPerDevice}`;
  const urlOf = (database: string) => {
    const url = new URL(serverUrl);
    url.pathname = `/${database}`;
    return url.href;
  };
  const server = postgres(serverUrl, { max: 1, onnotice: () => {} });
  try {
    const [found] = await server`select from pg_database where datname = ${name}`;
    if (found !== undefined) {
      await migrateToNewest(urlOf(name));
      return { url: urlOf(name), migration: undefined };
    }
    // It has its name once it is complete, so that a run which was broken off leaves none that looks so.
    const filling = `${name}_filling`;
    await server`drop database if exists ${server(filling)}`;
    await server`create database ${server(filling)} template template0`;
    const label = `${size.devices} devices: `;
    const times = await fillFleet(urlOf(filling), { size, progress: (text) => progress(label + text) });
    await server`alter database ${server(filling)} rename to ${server(name)}`;
    return { url: urlOf(name), migration: migrationText(times, size) };
  } finally {
    await server.end();
  }
}

function progress(text: string): void {
  process.stderr.write(`${new Date().toTimeString().slice(0, 8)}  ${text}\n`);
}
