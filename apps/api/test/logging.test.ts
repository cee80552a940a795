import { DrizzleQueryError } from "drizzle-orm";
import { describe, expect, test } from "vitest";
import { createLogger } from "../src/logging.ts";

const SECRET = "hunter2";

function logged(write: (logger: ReturnType<typeof createLogger>) => void): string {
  const lines: string[] = [];
  write(createLogger({ level: "debug", destination: { write: (line: string) => void lines.push(line) } }));
  return lines.join("");
}

describe("createLogger", () => {
  test("an error is logged with its causes, and without what hangs on it: parameters, details, request bodies", () => {
    const cause = Object.assign(new Error("duplicate key"), {
      code: "23505",
      detail: `(token)=(${SECRET})`,
      parameters: [SECRET],
    });
    const error = new DrizzleQueryError("insert into devices values ($1, $2)", [`a\n${SECRET}`, SECRET], cause);
    const line = logged((logger) => logger.error({ err: error }, "failed"));
    expect(line).not.toContain(SECRET);
    expect(JSON.parse(line)).toMatchObject({
      level: "error",
      msg: "failed",
      err: {
        message: "Failed query: insert into devices values ($1, $2)",
        stack: expect.stringContaining("logging.test.ts"),
        cause: { code: "23505", message: "duplicate key" },
      },
    });
  });

  test("a secret that somebody logs by name is redacted", () => {
    const line = logged((logger) => logger.info({ token: SECRET, headers: { authorization: SECRET } }, "careless"));
    expect(line).not.toContain(SECRET);
  });

  test("an error that is its own cause is logged and ends", () => {
    const error = new Error("round");
    error.cause = error;
    expect(logged((logger) => logger.error({ err: error }, "failed"))).toContain("round");
  });
});
