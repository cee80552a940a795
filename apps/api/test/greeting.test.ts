import { describe, expect, test } from "vitest";
import { greeting } from "../src/greeting.ts";

const KEY = "secret-of-the-operator";

function greet(options: { readonly created: boolean; readonly terminal: boolean; readonly empty: boolean }): string {
  const { created, terminal, empty } = options;
  const operatorKey = { value: KEY, file: "/data/it's here/operator-key", created };
  return greeting({
    url: "http://127.0.0.1:3000",
    keys: { urlSigningKey: Buffer.alloc(32), operatorKey },
    empty,
    terminal,
  });
}

describe("greeting", () => {
  test("a new key is shown once, on a terminal, and never again", () => {
    expect(greet({ created: true, terminal: true, empty: true }).split(KEY)).toHaveLength(2);
    expect(greet({ created: true, terminal: false, empty: true })).not.toContain(KEY);
    expect(greet({ created: false, terminal: true, empty: true })).not.toContain(KEY);
  });

  test("the lines to try are printed while nothing is published, with the folder's name quoted for the shell", () => {
    const text = greet({ created: false, terminal: true, empty: true });
    expect(text).toContain(`OTA_OPERATOR_KEY=$(cat '/data/it'\\''s here/operator-key')`);
    expect(greet({ created: false, terminal: true, empty: false })).not.toContain("Try it");
  });
});
