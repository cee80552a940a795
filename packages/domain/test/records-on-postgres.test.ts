import { hasPostgres } from "@ota/testkit";
import { describe } from "vitest";
import { freshDatabase, openPostgres } from "./support/databases.ts";
import { RECORD_CASES } from "./support/record-cases.ts";

describe.skipIf(!hasPostgres)("on PostgreSQL:", () => {
  const database = freshDatabase(openPostgres);
  for (const cases of RECORD_CASES) cases(database);
});
