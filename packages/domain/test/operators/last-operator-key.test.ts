import { hasPostgres } from "@ota/testkit";
import { describe, expect, it } from "vitest";
import { createOperatorKey, listOperatorKeys, revokeOperatorKey } from "../../src/index.ts";
import { freshDatabase, openPostgres } from "../support/databases.ts";
import { tally } from "../support/errors.ts";
import { SYSTEM } from "../support/records.ts";

describe.skipIf(!hasPostgres)("the last operator key", () => {
  const database = freshDatabase(openPostgres);

  it("is never revoked, also when all keys are revoked at once", async () => {
    const { db } = database();
    const ids = [];
    for (const name of ["a", "b", "c", "d", "e"]) {
      ids.push((await createOperatorKey(db, { actor: SYSTEM, name })).operatorKey.id);
    }
    const revoke = (operatorKeyId: string) => revokeOperatorKey(db, { actor: SYSTEM, operatorKeyId });
    expect(await tally(ids.map(revoke))).toEqual({ "no error": 4, LAST_OPERATOR_KEY: 1 });
    const { items } = await listOperatorKeys(db, {});
    expect(items.filter(({ revokedAt }) => revokedAt === null)).toHaveLength(1);
  });
});
