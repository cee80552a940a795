import semver from "semver";
import { requireAttributeName } from "../devices/device-fields.ts";
import { invalidField, requireText } from "../fields.ts";
import type { DeviceAttributes } from "../schema/devices.ts";

/** What an attribute is compared with. Values of different types are never equal: `1` is not `"1"`. */
export type AttributeValue = DeviceAttributes[string];

/**
 * A condition on the attributes of a device, as JSON. An attribute that a device has not got meets no comparison, and so
 * does one that is no version where a range of versions is asked for.
 */
export type AttributeFilter =
  | { readonly all: readonly AttributeFilter[] }
  | { readonly any: readonly AttributeFilter[] }
  | { readonly not: AttributeFilter }
  | { readonly attribute: string; readonly eq: AttributeValue }
  | { readonly attribute: string; readonly in: readonly AttributeValue[] }
  | { readonly attribute: string; readonly exists: boolean }
  /** A range of Semantic Versioning as npm writes it, such as `>=1.2.0 <2`; pre-releases are ordered like any version. */
  | { readonly attribute: string; readonly semver: string };

/** A filter that has been read, so that a check does not read it again. */
export type AttributeCondition = (attributes: DeviceAttributes) => boolean;

/** Conditions and comparisons, each counted as one: a filter is read with every change of the catalog. */
export const MAX_FILTER_NODES = 32;
const MAX_VALUES = 100;
const MAX_VALUE_LENGTH = 256;
/** Far above any range that people write; the library's expressions are never given more. */
const MAX_RANGE_LENGTH = 128;

const OPERATORS = ["all", "any", "not", "eq", "in", "exists", "semver"] as const;
type Operator = (typeof OPERATORS)[number];

/**
 * Reads a filter that came from outside. Throws INVALID_FIELD, which names the node that is wrong by its path, such as
 * `attributeFilter.all[1].semver`.
 */
export function readAttributeFilter(value: unknown, field = "attributeFilter"): AttributeCondition {
  let nodes = 0;
  return readNode(value, field);

  function readNode(node: unknown, path: string): AttributeCondition {
    nodes += 1;
    if (nodes > MAX_FILTER_NODES) invalidField(path, `left out: a filter has at most ${MAX_FILTER_NODES} nodes`);
    const { operator, operand, attribute } = requireNode(node, path);
    const at = `${path}.${operator}`;
    switch (operator) {
      case "all": {
        const parts = requireList(operand, at).map((part, index) => readNode(part, `${at}[${index}]`));
        return (attributes) => parts.every((part) => part(attributes));
      }
      case "any": {
        const parts = requireList(operand, at).map((part, index) => readNode(part, `${at}[${index}]`));
        return (attributes) => parts.some((part) => part(attributes));
      }
      case "not": {
        const part = readNode(operand, at);
        return (attributes) => !part(attributes);
      }
      case "eq": {
        const wanted = requireValue(operand, at);
        return (attributes) => attributeOf(attributes, attribute) === wanted;
      }
      case "in": {
        const wanted = new Set(requireList(operand, at).map((one, index) => requireValue(one, `${at}[${index}]`)));
        return (attributes) => wanted.has(attributeOf(attributes, attribute) as AttributeValue);
      }
      case "exists":
        if (typeof operand !== "boolean") return invalidField(at, "true or false");
        return (attributes) => Object.hasOwn(attributes, attribute) === operand;
      case "semver": {
        const range = requireRange(operand, at);
        return (attributes) => {
          const version = attributeOf(attributes, attribute);
          return typeof version === "string" && range.test(version);
        };
      }
    }
  }
}

/** An attribute's own value: no device has an attribute that every object of the language has. */
function attributeOf(attributes: DeviceAttributes, name: string): AttributeValue | undefined {
  return Object.hasOwn(attributes, name) ? attributes[name] : undefined;
}

interface Node {
  readonly operator: Operator;
  readonly operand: unknown;
  /** Empty for what combines other nodes. */
  readonly attribute: string;
}

function requireNode(value: unknown, path: string): Node {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return invalidField(path, `an object with one of ${OPERATORS.join(", ")}`);
  }
  const node = value as Readonly<Record<string, unknown>>;
  const { attribute, ...rest } = node;
  const [operator, ...others] = Object.keys(rest);
  const known = OPERATORS.find((one) => one === operator);
  if (known === undefined || others.length > 0) return invalidField(path, `one of ${OPERATORS.join(", ")}, once`);
  const combines = known === "all" || known === "any" || known === "not";
  if (combines) {
    if (attribute !== undefined) invalidField(`${path}.attribute`, `left out with ${known}`);
    return { operator: known, operand: rest[known], attribute: "" };
  }
  if (typeof attribute !== "string") return invalidField(`${path}.attribute`, "the name of an attribute");
  requireAttributeName(`${path}.attribute`, attribute);
  return { operator: known, operand: rest[known], attribute };
}

function requireList(value: unknown, path: string): readonly unknown[] {
  const valid = Array.isArray(value) && value.length > 0 && value.length <= MAX_VALUES;
  return valid ? value : invalidField(path, `a list of 1 to ${MAX_VALUES}`);
}

function requireValue(value: unknown, path: string): AttributeValue {
  if (typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value))) return value;
  if (typeof value !== "string") return invalidField(path, "text, a number, true or false");
  if (value !== "") requireText(path, value, { maxLength: MAX_VALUE_LENGTH });
  return value;
}

function requireRange(value: unknown, path: string): semver.Range {
  const text = typeof value === "string" && value.length <= MAX_RANGE_LENGTH ? value : undefined;
  const range = text === undefined ? null : semver.validRange(text, RANGE_OPTIONS);
  if (text === undefined || range === null) return invalidField(path, "a range of versions such as >=1.2.0 <2");
  return new semver.Range(text, RANGE_OPTIONS);
}

/** A pre-release within the range is meant by it: the narrower rule of npm is one about dependencies. */
const RANGE_OPTIONS = { includePrerelease: true } as const;
