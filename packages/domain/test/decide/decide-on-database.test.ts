import { describe, expect, it } from "vitest";
import { loadCatalog } from "../../src/check/catalog-cache.ts";
import { DeviceStates } from "../../src/check/device-states.ts";
import { decideUpdate } from "../../src/decide/decide-update.ts";
import { describeOnDatabases } from "../support/databases.ts";
import { CASES } from "./cases/all.ts";
import { describeDecision } from "./facts-of-case.ts";
import { insertCase } from "./rows-of-case.ts";

/** The same table as for the pure function: the queries lose nothing, and decide nothing. */
describeOnDatabases("decideUpdate of what the check's queries load", (database) => {
  describe.each(CASES)("%s", (_topic, cases) => {
    it.each(cases)("$title", async (given) => {
      const { db } = database();
      const { tokenHash } = await insertCase(db, given);
      const state = await new DeviceStates(db).of({ tokenHash });
      if (state === undefined) throw new Error("The device was not found.");
      const catalog = await loadCatalog(db, state.product.id);
      expect(describeDecision(decideUpdate({ ...state, catalog }), { catalog })).toBe(given.expect);
    });
  });
});
