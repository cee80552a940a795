import type { AcquireRequest, AcquireResult } from "@ota/lock-core";
import type { Mistake } from "./mistake.ts";
import { PlainStore, type Row } from "./plain-store.ts";

/** Mistakes about which key is which. */
export const keyMistakes: readonly Mistake[] = [
  {
    name: "long keys are cut off",
    Store: storeWithKeys((key) => key.slice(0, 255)),
    caughtBy: ["similar-keys-are-different-keys"],
  },
  {
    name: "keys are folded to lower case",
    Store: storeWithKeys((key) => key.toLowerCase()),
    caughtBy: ["similar-keys-are-different-keys"],
  },
  {
    name: "blanks around a key are trimmed",
    Store: storeWithKeys((key) => key.trim()),
    caughtBy: ["similar-keys-are-different-keys"],
  },
  {
    name: "a key ends at a NUL byte",
    Store: storeWithKeys((key) => key.split("\u0000")[0] ?? ""),
    caughtBy: ["similar-keys-are-different-keys"],
  },
  {
    name: "keys are brought into one unicode form",
    Store: storeWithKeys((key) => key.normalize("NFC")),
    caughtBy: ["similar-keys-are-different-keys"],
  },
  {
    name: "a hash tag is taken for the key",
    Store: storeWithKeys((key) => /\{(.+?)\}/.exec(key)?.[1] ?? key),
    caughtBy: ["similar-keys-are-different-keys"],
  },
  {
    name: "all keys are one key",
    Store: storeWithKeys(() => "the lock"),
    caughtBy: [
      "keys-are-independent",
      "one-owner-may-hold-several-keys",
      "refusal-changes-nothing-for-the-holder",
      "a-race-has-one-winner",
      "grant-again-starts-the-ttl-anew",
      "release-of-another-key-is-harmless",
      "similar-keys-are-different-keys",
      "foreign-string-counts-as-held",
      "foreign-data-is-an-error-of-its-own",
      "ttl-comes-with-the-grant",
      "extend-by-a-stranger-says-lost",
      "wall-clock-of-the-client-changes-nothing",
    ],
  },
  {
    name: "the empty key is taken for no key",
    Store: class extends PlainStore {
      override async acquire(request: AcquireRequest): Promise<AcquireResult> {
        return request.key ? super.acquire(request) : { outcome: "contended" };
      }
    },
    caughtBy: ["empty-key-is-a-key"],
  },
  {
    name: "braces in a key are refused by an error that does not say why",
    Store: class extends PlainStore {
      protected override rowOf(key: string): Row | undefined {
        if (/[{}]/.test(key)) throw new TypeError("bad key");
        return super.rowOf(key);
      }
    },
    caughtBy: ["any-string-is-a-key", "similar-keys-are-different-keys"],
  },
];

/** A store that changes keys before it uses them. */
function storeWithKeys(change: (key: string) => string): Mistake["Store"] {
  return class extends PlainStore {
    protected override rowOf(key: string): Row | undefined {
      return super.rowOf(change(key));
    }

    protected override write(key: string, lease: { readonly owner: string; readonly ttlMs: number }): void {
      super.write(change(key), lease);
    }

    protected override remove(key: string): void {
      super.remove(change(key));
    }
  };
}
