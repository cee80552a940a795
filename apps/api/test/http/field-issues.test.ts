import { describe, expect, test } from "vitest";
import { z } from "zod";
import { parseFields } from "../../src/http/field-issues.ts";
import { attributeChangesSchema, SOME_CHANGE, serialSchema } from "../../src/http/schemas.ts";

function told(schema: z.ZodType, value: unknown): readonly (readonly string[])[] {
  const parsed = parseFields(schema, value);
  return "data" in parsed ? [] : parsed.issues.map(({ field, message }) => [field, message]);
}

describe("what is wrong with a request", () => {
  test("a field that is not there is missing, whatever it takes", () => {
    const schema = z.strictObject({
      ...{ serial: serialSchema, state: z.enum(["on", "off"]), value: z.union([z.string(), z.number()]) },
      items: z.array(z.object({ at: z.iso.datetime() })),
    });
    expect(told(schema, { items: [{}] })).toEqual([
      ["serial", "missing"],
      ["state", "missing"],
      ["value", "missing"],
      ["items.0.at", "missing"],
    ]);
    expect(told(schema.pick({ serial: true }), { serial: null })).toEqual([
      ["serial", "Invalid input: expected string, received null"],
    ]);
  });

  test("a name that is empty is shown, and what is wrong with a name is told", () => {
    expect(told(z.strictObject({ attributes: attributeChangesSchema }), { attributes: { "": 1 } })).toEqual([
      ['attributes.""', expect.stringMatching(/^as a name: Too small/)],
    ]);
  });

  test("a value of none of several types is told which ones are taken", () => {
    expect(told(attributeChangesSchema, { modem: {} })).toEqual([
      ["modem", "Invalid input: expected string or number or boolean"],
    ]);
  });

  test("an unknown field among changes is all that is told; no change at all is told as that", () => {
    const changes = z
      .strictObject({ channel: z.string().optional() })
      .refine((given) => Object.keys(given).length > 0, SOME_CHANGE);
    expect(told(changes, { chanel: "beta" })).toEqual([["chanel", "unknown field"]]);
    expect(told(changes, {})).toEqual([["", "names nothing to change"]]);
    expect(told(changes, { channel: "beta" })).toEqual([]);
  });
});
