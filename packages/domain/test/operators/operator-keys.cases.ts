import { expect, it } from "vitest";
import {
  authenticateOperator,
  createOperatorKey,
  ensureOperatorKey,
  listOperatorKeys,
  revokeOperatorKey,
} from "../../src/index.ts";
import { newToken } from "../../src/tokens.ts";
import { casesOn } from "../support/databases.ts";
import { codeOf, inParallel } from "../support/errors.ts";
import { SYSTEM, uniqueName } from "../support/records.ts";

export const operatorKeyCases = casesOn("operator keys", (database) => {
  it("a key authenticates its operator, and its secret is stored nowhere", async () => {
    const { db, query } = database();
    const name = "Zoë O'Hara \u{1f511}";
    const { operatorKey, key } = await createOperatorKey(db, { actor: SYSTEM, name });
    expect(await authenticateOperator(db, { key })).toEqual({ kind: "operator", keyId: operatorKey.id, name });
    const dump = await query("select k::text as row from operator_keys k union all select a::text from audit_log a");
    expect(dump.filter(({ row }) => String(row).includes(key))).toEqual([]);
  });

  it("an unknown, empty or hostile key is refused", async () => {
    for (const key of ["", "\0", "\ud800", newToken(), "x".repeat(100_000)]) {
      expect(await codeOf(authenticateOperator(database().db, { key }))).toBe("OPERATOR_KEY_INVALID");
    }
  });

  it("a revoked key is refused at once, and revoking it again changes nothing", async () => {
    const { db } = database();
    await createOperatorKey(db, { actor: SYSTEM, name: "stays" });
    const { operatorKey, key } = await createOperatorKey(db, { actor: SYSTEM, name: "goes" });
    const revoke = () => revokeOperatorKey(db, { actor: SYSTEM, operatorKeyId: operatorKey.id });
    const revoked = await revoke();
    expect(revoked).toEqual({ ...operatorKey, revokedAt: expect.any(Date) });
    expect(await codeOf(authenticateOperator(db, { key }))).toBe("OPERATOR_KEY_INVALID");
    expect(await revoke()).toEqual(revoked);
    expect((await listOperatorKeys(db, { limit: 1 })).items).toEqual([revoked]);
  });

  it("a key from outside is made once, however many processes start with it", async () => {
    const { db } = database();
    const input = { name: uniqueName("bootstrap"), key: newToken() };
    const keys = await Promise.all(inParallel(20, () => ensureOperatorKey(db, input)));
    expect(new Set(keys.map(({ id }) => id)).size).toBe(1);
    expect(await authenticateOperator(db, input)).toMatchObject({ name: input.name });
  });

  it("a revoked key from outside stays revoked", async () => {
    const { db } = database();
    await createOperatorKey(db, { actor: SYSTEM, name: "stays" });
    const input = { name: uniqueName("bootstrap"), key: newToken() };
    const { id } = await ensureOperatorKey(db, input);
    await revokeOperatorKey(db, { actor: SYSTEM, operatorKeyId: id });
    expect(await ensureOperatorKey(db, input)).toMatchObject({ id, revokedAt: expect.any(Date) });
    expect(await codeOf(authenticateOperator(db, input))).toBe("OPERATOR_KEY_INVALID");
  });

  it.each(["", "short", "a".repeat(21), "a".repeat(257), `${"a".repeat(30)} `, `${"a".repeat(30)}\0`, "ä".repeat(30)])(
    "the key %j from outside is refused without being repeated",
    async (key) => {
      const error = await ensureOperatorKey(database().db, { name: "a", key }).catch((error: unknown) => error);
      expect(error).toMatchObject({ code: "INVALID_FIELD", details: { field: "key" } });
      if (key.length > 0) expect(JSON.stringify(error) + String(error)).not.toContain(key);
    },
  );

  it.each(["", "a\0", "a\n", "\ud800", "a".repeat(129)])("the name %j is refused", async (name) => {
    expect(await codeOf(createOperatorKey(database().db, { actor: SYSTEM, name }))).toBe("INVALID_FIELD");
    expect(await codeOf(ensureOperatorKey(database().db, { name, key: newToken() }))).toBe("INVALID_FIELD");
  });

  it("what belongs to nothing is NOT_FOUND", async () => {
    for (const operatorKeyId of ["", "\0", "00000000-0000-7000-8000-000000000000"]) {
      expect(await codeOf(revokeOperatorKey(database().db, { actor: SYSTEM, operatorKeyId }))).toBe("NOT_FOUND");
    }
  });
});
