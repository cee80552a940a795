import { LockOptionsError } from "@ota/lock-core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { leaseFromPhpKey, phpKeyFromLease } from "../src/index.ts";
import { newOwner } from "./support.ts";

const KEY = 'O:26:"Symfony\\Component\\Lock\\Key"';
const STORE = "Symfony\\Component\\Lock\\Store\\RedisStore";
const TOKEN = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
const STATE = `a:1:{s:39:"${STORE}";s:44:"${TOKEN}";}`;
const LEASE = {
  version: 1,
  key: "firmware:7",
  owner: TOKEN,
  mode: "exclusive",
  deadlineMs: 1_795_971_193_594,
} as const;

/** As PHP writes it, with the pieces that a test is about in place of the usual ones. */
function native({ resource = 's:10:"firmware:7";', expiringTime = "d:1795971193.594;", state = STATE } = {}): string {
  return `${KEY}:3:{s:8:"resource";${resource}s:12:"expiringTime";${expiringTime}s:5:"state";${state}}`;
}

function json(fields: object = {}): string {
  return JSON.stringify({
    resource: "firmware:7",
    expiringTime: 1795971193.594,
    state: { [STORE]: TOKEN },
    ...fields,
  });
}

describe("leaseFromPhpKey", () => {
  it("reads the private names that symfony/lock up to 7.2 writes", () => {
    const name = (property: string) => {
      const written = `\0Symfony\\Component\\Lock\\Key\0${property}`;
      return `s:${written.length}:"${written}";`;
    };
    const text = `${KEY}:3:{${name("resource")}s:10:"firmware:7";${name("expiringTime")}d:1795971193.594;${name("state")}${STATE}}`;
    expect(leaseFromPhpKey(text)).toEqual(LEASE);
  });

  it("reads the plain names of later versions, and the JSON of their normalizer", () => {
    expect(leaseFromPhpKey(native())).toEqual(LEASE);
    expect(leaseFromPhpKey(json())).toEqual(LEASE);
  });

  it("takes the mode from its caller, as a Key tells none", () => {
    expect(leaseFromPhpKey(json(), { mode: "shared" })).toEqual({ ...LEASE, mode: "shared" });
    expect(() => leaseFromPhpKey(json(), { mode: "write" as never })).toThrow(LockOptionsError);
  });

  it("takes lengths for bytes, not for characters", () => {
    const resource = "\ufeffclé 🔑\n";
    const text = native({ resource: `s:${Buffer.byteLength(resource)}:"${resource}";` });
    expect(leaseFromPhpKey(text).key).toBe(resource);
    expect(() => leaseFromPhpKey(native({ resource: `s:${resource.length}:"${resource}";` }))).toThrow(/byte/);
    expect(() => leaseFromPhpKey(native({ resource: 's:1:"é";' }))).toThrow(/between two characters/);
  });

  it("leaves out the states of other stores, whatever they are", () => {
    const others = 's:3:"Foo";a:4:{i:0;b:1;i:1;N;i:2;d:-1.0E-25;s:1:"x";a:1:{i:0;i:-5;}}s:3:"Bar";d:INF;';
    const state = `a:3:{${others}${STATE.slice(5)}`;
    expect(leaseFromPhpKey(native({ state }))).toEqual(LEASE);
    expect(leaseFromPhpKey(json({ state: { Foo: [1], [STORE]: TOKEN } }))).toEqual(LEASE);
  });

  it("has no deadline to show, 0, for a Key that never ends by itself", () => {
    expect(leaseFromPhpKey(native({ expiringTime: "N;" })).deadlineMs).toBe(0);
    expect(leaseFromPhpKey(json({ expiringTime: null })).deadlineMs).toBe(0);
  });

  const refused: Record<string, string> = {
    "nothing at all": "",
    "the bare token": TOKEN,
    "another class": native().replace('Lock\\Key"', 'Lock\\Kex"'),
    "the class name with a wrong length": native().replace("O:26:", "O:25:"),
    "an object within the state": native({ state: `a:1:{s:1:"x";${KEY}:0:{}}` }),
    "a reference": native({ state: 'a:1:{s:1:"x";R:1;}' }),
    "an object that unserializes itself": native().replace("O:", "C:"),
    "an enumeration": native({ state: 'a:1:{s:1:"x";E:3:"A:B";}' }),
    "a property that comes twice": native().replace(":3:{", ':4:{s:8:"resource";s:1:"x";'),
    "fewer properties than it says": native().replace(":3:{", ":4:{"),
    "more properties than it says": native().replace(":3:{", ":2:{"),
    "a string longer than the text": native({ resource: 's:999999999:"x";' }),
    "a length of ten digits": native({ resource: 's:0000000010:"firmware:7";' }),
    "a negative length": native({ resource: 's:-1:"";' }),
    "bytes after its end": `${native()}x`,
    "an end that is missing": native().slice(0, -1),
    "arrays in arrays without end": native({ state: `a:1:{i:0;${"a:1:{i:0;".repeat(50_000)}` }),
    "an array as a name": native({ state: "a:1:{a:0:{}i:1;}" }),
    "a resource that is a number": native({ resource: "i:7;" }),
    "an endless lifetime": native({ expiringTime: "d:INF;" }),
    "a lifetime that is no number": native({ expiringTime: 's:3:"1.5";' }),
    "no state": native({ state: "N;" }),
    "an unused Key": native({ state: "a:0:{}" }),
    "an unused Key in JSON": json({ state: [] }),
    "a token that is no string": json({ state: { [STORE]: 5 } }),
    "the marker of writers as the token": json({ state: { [STORE]: "__write__" } }),
    "an empty token": native({ state: `a:1:{s:39:"${STORE}";s:0:"";}` }),
    "a token of another store alone": json({ state: { "Symfony\\Component\\Lock\\Store\\PdoStore": TOKEN } }),
    "the name that symfony/lock overwrites": json({ resource: "symfony_check_support_time" }),
    "JSON that ends early": json().slice(0, -2),
    "a resource without a UTF-8 form": json().replace("firmware", "\\ud800"),
    "text without a UTF-8 form": native({ resource: 's:3:"\ud800";' }),
    "more than a megabyte": native({ resource: `s:1000001:"${"x".repeat(1_000_001)}";` }),
  };
  it.each(Object.entries(refused))("refuses %s, showing nothing of it", (_, text) => {
    let error: unknown;
    try {
      leaseFromPhpKey(text);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(LockOptionsError);
    const shown = `${(error as Error).message} ${JSON.stringify(error)}`;
    expect(shown).not.toContain(TOKEN.slice(0, 8));
  });

  it("refuses what is no text", () => {
    for (const value of [undefined, null, 7, {}, Buffer.from(native())]) {
      expect(() => leaseFromPhpKey(value as never)).toThrow(LockOptionsError);
    }
  });

  it("either refuses a text that was tampered with, or gives a lease; it never fails otherwise", () => {
    const change = fc.record({ at: fc.nat(250), cut: fc.nat(12), put: fc.string({ maxLength: 12, unit: "binary" }) });
    const pieces = fc.constantFrom("O:", "a:2:{", "s:5:", '"', ";", "}", "i:1;", "N;", "d:", "R:1;", "\0", "999999999");
    const texts = fc.oneof(
      fc.tuple(fc.constantFrom(native(), json()), change).map(([text, { at, cut, put }]) => {
        return text.slice(0, at) + put + text.slice(at + cut);
      }),
      fc.tuple(fc.nat(200), pieces).map(([at, piece]) => native().slice(0, at) + piece + native().slice(at)),
      fc.array(pieces, { maxLength: 40 }).map((parts) => `${KEY}:3:{${parts.join("")}}`),
    );
    fc.assert(
      fc.property(texts, (text) => {
        try {
          const { key, owner, deadlineMs } = leaseFromPhpKey(text);
          expect([typeof key, typeof owner, Number.isFinite(deadlineMs)]).toEqual(["string", "string", true]);
        } catch (error) {
          expect(error).toBeInstanceOf(LockOptionsError);
        }
      }),
      { numRuns: 3_000 },
    );
  });
});

describe("phpKeyFromLease", () => {
  it("writes plain names and the JSON of the normalizer", () => {
    expect(phpKeyFromLease(LEASE, { encoding: "native" })).toBe(native());
    expect(phpKeyFromLease(LEASE, { encoding: "json" })).toBe(json());
  });

  it("is read back as the same lease, whatever its name", () => {
    const names = fc.string({ unit: "binary" }).filter((name) => name.isWellFormed());
    const leases = fc.record({ key: names, deadlineMs: fc.nat({ max: 2 ** 50 }) });
    fc.assert(
      fc.property(leases, fc.constantFrom("native", "json"), ({ key, deadlineMs }, encoding) => {
        const lease = { ...LEASE, key, owner: newOwner(), deadlineMs };
        const read = leaseFromPhpKey(phpKeyFromLease(lease, { encoding }));
        expect({ ...read, deadlineMs: 0 }).toEqual({ ...lease, deadlineMs: 0 });
        expect(Math.abs(read.deadlineMs - deadlineMs)).toBeLessThanOrEqual(1);
      }),
    );
  });

  it("refuses a lease that PHP could not hold, and other encodings, showing no token", () => {
    const refusal = (change: object, encoding = "native") => {
      try {
        return phpKeyFromLease({ ...LEASE, ...change } as never, { encoding: encoding as never });
      } catch (error) {
        return error;
      }
    };
    expect(refusal({ owner: "__write__" })).toMatchObject({ option: "owner" });
    expect(refusal({ key: "symfony_check_support_time" })).toMatchObject({ option: "key" });
    expect(refusal({ deadlineMs: Number.NaN })).toMatchObject({ option: "lease.deadlineMs" });
    expect(refusal({}, "xml")).toMatchObject({ option: "encoding" });
    expect(String(refusal({}, "xml"))).not.toContain(TOKEN);
  });
});
