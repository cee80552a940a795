import { describe, expect, test } from "vitest";
import { sleepText } from "../../src/ddi/base-poll.ts";
import { readFeedback } from "../../src/ddi/feedback-body.ts";

const CLOSED = '"status":{"execution":"closed","result":{"finished":"failure"},"details":["line\u0007 one"]}';

describe("feedback", () => {
  test.for([
    ["as swupdate sends it", `{"id":4,"time":"20261129T164601",${CLOSED.replace("\u0007", "")}}`, ["line one"], []],
    ["as rauc sends it", `{"id":"4",${CLOSED.replace("\u0007", "")}}`, ["line one"], []],
    ["with control characters in its log", `{${CLOSED}}`, ["line  one"], []],
    ["with line feeds in its log", `{${CLOSED.replace("\u0007", "\n")}}`, ["line  one"], []],
    ["with a NUL in its log", `{${CLOSED.replace("\u0007", "\u0000")}}`, ["line  one"], []],
    [
      "with ill-typed members that do not count",
      `{"timestamp":"now",${CLOSED.replace('"line', '7,null,"line').replace("\u0007", "")}}`,
      ["line one"],
      ["details", "timestamp"],
    ],
  ] as const)("is read %s", ([, text, details, unreadable]) => {
    expect(readFeedback(text)).toEqual({
      ...{ execution: "closed", finished: "failure", details, unreadable },
      ...{ progressPercent: undefined, code: undefined, deviceTime: undefined },
    });
  });

  test.for([
    ["cut off", `{${CLOSED.slice(0, -12)}`],
    ["with quotes in its log that are not escaped", `{${CLOSED.replace("\u0007", '"quoted"')}}`],
  ])("is salvaged when it is no JSON: %s", ([, text]) => {
    expect(readFeedback(text ?? "")).toMatchObject({ execution: "closed", finished: "failure" });
  });

  test.for([
    "",
    "[]",
    "null",
    "{}",
    '{"status":{"execution":"closed","result":{}}}',
    '{"status":{"execution":"CLOSED","result":{"finished":"none"}}}',
    '{"execution":"closed"',
  ])("is refused without the two words that count: %s", (text) => {
    expect(readFeedback(text)).toBeUndefined();
  });

  test("gives progress in percent, and the device's time where it is one", () => {
    const status = { execution: "proceeding", result: { finished: "none", progress: { cnt: 2, of: 5 } }, code: 200 };
    expect(readFeedback(JSON.stringify({ timestamp: 1_627_997_501_890, status }))).toMatchObject({
      ...{ progressPercent: 40, code: 200, deviceTime: new Date(1_627_997_501_890) },
    });
    const odd = { ...status, result: { finished: "none", progress: { cnt: 2, of: 0 } } };
    const read = readFeedback(JSON.stringify({ timestamp: 1e300, status: odd }));
    expect([read?.progressPercent, read?.deviceTime]).toEqual([undefined, undefined]);
    expect(read?.unreadable).toEqual(["progress", "timestamp"]);
  });
});

describe("the time to sleep", () => {
  test.for([
    [0, "00:00:00"],
    [30, "00:00:30"],
    [299.6, "00:05:00"],
    [3661, "01:01:01"],
    [86_399, "23:59:59"],
    [90_000, "23:59:59"],
  ] as const)("of %d seconds is %s", ([seconds, text]) => {
    expect(sleepText(seconds)).toBe(text);
  });
});
