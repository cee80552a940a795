import { describe } from "vitest";
import { freshDatabase, openPglite } from "./support/databases.ts";
import { RECORD_CASES } from "./support/record-cases.ts";

describe("on PGlite:", () => {
  const database = freshDatabase(openPglite);
  for (const cases of RECORD_CASES) cases(database);
});
