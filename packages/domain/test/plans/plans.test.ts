import { createTestDatabase, hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkWorks, problemsOf } from "./check-works.ts";
import { fillFleet } from "./fleet-data.ts";
import { openDatabase, type WorkDatabase } from "./open-database.ts";
import type { SentStatement } from "./statement-plans.ts";
import { WORKS } from "./works.ts";

/** The least of which PostgreSQL looks up by indexes what it looks up by them among millions (`pnpm check:plans`). */
const SIZE = { devices: 10_000, recordsPerDevice: 4 };

/** Filling takes some seconds of the processor's time, of several connections at once. */
const FILL_TIMEOUT_MS = 300_000;

describe.skipIf(!hasPostgres)(
  "what devices, operators and the sweeper ask the database for",
  { timeout: 120_000 },
  () => {
    let database: WorkDatabase;

    beforeAll(async () => {
      const url = await createTestDatabase();
      await fillFleet(url, { size: SIZE, progress: () => {} });
      database = await openDatabase(url, SIZE);
    }, FILL_TIMEOUT_MS);
    afterAll(() => database?.close());

    const problems = async (works = WORKS) => (await checkWorks(database, works)).flatMap(problemsOf);

    it("is found by indexes, however many devices, records and events there are", async () => {
      expect(WORKS.length).toBeGreaterThan(50);
      expect(await problems()).toEqual([]);
    });

    it("is asked for by statements whose texts do not depend on data", async () => {
      const texts: SentStatement[] = [];
      for (const work of WORKS) {
        await work.run(database);
        texts.push(...database.takeStatements());
      }
      expect(texts.length).toBeGreaterThan(WORKS.length);
      expect(texts.filter(({ text }) => /'(stable|fleet|beta)'|serial-|1\.0\./.test(text))).toEqual([]);
    });

    it("would be seen to be scanned for, were an index missing", async () => {
      await database.session.unsafe(
        "alter table upgrade_attempts drop constraint upgrade_attempts_upgrade_id_n_unique",
      );
      const found = await problems(
        WORKS.filter(({ name }) => name === "check: up to date" || name === "deleting a device"),
      );
      const heads = found.map((text) => text.split("\n", 1)[0]);
      expect(heads).toContain("check: up to date: a plan for any parameters scans a table");
      expect(heads).toContain("check: up to date: a plan for its parameters scans a table");
      expect(heads).toContain("check: up to date: upgrade_attempts was scanned");
      expect(heads).toContain("deleting a device: upgrade_attempts was scanned");
    });
  },
);
