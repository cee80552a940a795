import type { z } from "zod";

/** One thing that a schema finds wrong, in words for whoever wrote the request. */
export interface FieldIssue {
  /** `attributes.modem`, below what was parsed; `""`: that as a whole. */
  readonly field: string;
  readonly message: string;
  /** Whether the schema has no such field. */
  readonly isUnknown: boolean;
}

/** All that a schema finds wrong with a value, or the value as the schema has it. */
export function parseFields<Output>(
  schema: z.ZodType<Output>,
  value: unknown,
): { readonly data: Output } | { readonly issues: readonly FieldIssue[] } {
  const parsed = schema.safeParse(value, MISSING);
  return parsed.success ? { data: parsed.data } : { issues: parsed.error.issues.flatMap(fieldIssues) };
}

/** A field that is not there is told as that, and not as a value of the wrong type. */
const MISSING: z.core.ParseContext<z.core.$ZodIssue> = {
  error: ({ input }) => (input === undefined ? "missing" : undefined),
};

function fieldIssues(issue: z.core.$ZodIssue): readonly FieldIssue[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({
      ...{ field: fieldName([...issue.path, key]), message: "unknown field", isUnknown: true },
    }));
  }
  return [{ field: fieldName(issue.path), message: messageOf(issue), isUnknown: false }];
}

function messageOf(issue: z.core.$ZodIssue): string {
  // What is wrong with the name itself.
  if (issue.code === "invalid_key") return `as a name: ${issue.issues.map(({ message }) => message).join("; ")}`;
  if (issue.code !== "invalid_union" || issue.message === "missing") return issue.message;
  const types = issue.errors.flatMap(([first]) => (first?.code === "invalid_type" ? [first.expected] : []));
  return types.length === 0 ? issue.message : `${issue.message}: expected ${types.join(" or ")}`;
}

/** Parts of the name that came from outside are cut to what a reader needs; an empty one is shown as `""`. */
function fieldName(path: readonly PropertyKey[]): string {
  return path.map((step) => (step === "" ? '""' : String(step).slice(0, 100))).join(".");
}
