import assert from "node:assert/strict";
import { LockOptionsError } from "../../errors.ts";
import type { LockStore } from "../../store.ts";
import type { CaseDefinition } from "../contract-case.ts";
import { expectHeld, freshKey, freshOwner, grant, refuse } from "./asking.ts";

/** What a key may be: rule 9. A store may refuse a key it cannot keep, by a `LockOptionsError` about `key`. */
export const keyCases: readonly CaseDefinition[] = [
  {
    id: "any-string-is-a-key",
    rule: 9,
    title: "blanks, newlines, control characters, braces, unicode and long strings are keys, or are refused clearly",
    async check({ a, b, longTtlMs: ttlMs }) {
      const parts = [
        " ",
        "\t\n\r",
        "a\u0000b",
        "{}",
        "{tag}rest",
        "}{",
        "*?[a]",
        "'\"`\\",
        "%s%00",
        "../..",
        "ключ",
        "鍵🔑",
      ];
      for (const part of [...parts, "__proto__", "__write__", "x".repeat(10_000)]) {
        for (const key of [`${freshKey()}${part}`, `${part}${freshKey()}`]) {
          const holder = freshOwner(key);
          if (await refusesKey(a, key)) continue;
          await grant(a, { ...holder, ttlMs });
          await expectHeld(b, holder, true);
          await refuse(b, { ...freshOwner(key), ttlMs });
          assert.equal(await a.release(holder), "released", `release of the key ${JSON.stringify(key.slice(0, 80))}`);
        }
      }
    },
  },
  {
    id: "empty-key-is-a-key",
    rule: 9,
    title: "the empty string is a key like any other, or is refused clearly",
    async check({ a, b, longTtlMs: ttlMs }) {
      if (await refusesKey(a, "")) return;
      const holder = freshOwner("");
      await grant(a, { ...holder, ttlMs });
      await expectHeld(b, holder, true);
      assert.equal(await a.release(holder), "released");
      await expectHeld(b, holder, false);
    },
  },
  {
    id: "similar-keys-are-different-keys",
    rule: 9,
    title: "keys that differ only in case, in blanks, in unicode form, in braces or far behind are different locks",
    async check({ a, longTtlMs: ttlMs }) {
      for (const pairOf of SIMILAR_KEYS) {
        const [one, other] = pairOf(freshKey());
        if ((await refusesKey(a, one)) || (await refusesKey(a, other))) continue;
        const holder = freshOwner(one);
        const neighbour = freshOwner(other);
        await grant(a, { ...holder, ttlMs });
        await grant(a, { ...neighbour, ttlMs });
        assert.equal(await a.release(holder), "released");
        await expectHeld(a, neighbour, true);
        assert.equal(await a.release(neighbour), "released");
      }
    },
  },
];

const FAR = "x".repeat(10_000);

const SIMILAR_KEYS: readonly ((base: string) => readonly [string, string])[] = [
  (base) => [`${base}:key`, `${base}:KEY`],
  (base) => [base, `${base} `],
  (base) => [base, ` ${base}`],
  (base) => [base, `${base}\n`],
  (base) => [base, `${base}\u0000`],
  (base) => [`${base}\u00e9`, `${base}e\u0301`],
  (base) => [`${base}:a`, `${base}:{a}`],
  (base) => [`{${base}}:a`, `{${base}}:b`],
  (base) => [`${base}_`, `${base}%`],
  (base) => [`${base}${FAR}1`, `${base}${FAR}2`],
];

/** Whether the store refuses the key, and then as the contract wants it. */
async function refusesKey(store: LockStore, key: string): Promise<boolean> {
  try {
    await store.isHeld(freshOwner(key));
    return false;
  } catch (error) {
    assert.ok(error instanceof LockOptionsError && error.option === "key", `a key refused by ${String(error)}`);
    return true;
  }
}
