import type { BadRequest } from "./bad-request.ts";

const NO_ID = "00000000-0000-7000-8000-000000000000";

/** Terms of a rollout that cannot be, and rollouts that are none. */
export const badRolloutRequests: readonly BadRequest[] = badRequests();

function badRequests(): readonly BadRequest[] {
  const make = (title: string, terms: unknown, answer: Pick<BadRequest, "code" | "fields">): BadRequest => ({
    ...{ title, path: "/v1/firmware/:firmware/rollouts", token: "operator", body: JSON.stringify(terms), status: 422 },
    ...answer,
  });
  const fields = (...names: string[]) => ({ code: "FIELDS_INVALID", fields: names });
  const leaf = { attribute: "region", eq: "eu" };
  const phase = { percentage: 10, minSucceeded: 1, minSuccessPercentage: 50 };
  const none = { token: "operator", status: 404, code: "NOT_FOUND" };
  return [
    make("a share finer than a hundredth", { percentage: 0.001 }, fields("body.percentage")),
    make("a share above all", { percentage: 100.01 }, fields("body.percentage")),
    make(
      "a time of day that no clock shows",
      { window: { days: [1], from: "24:00", to: "01:00" } },
      fields("body.window.from"),
    ),
    make("a window on no day", { window: { days: [], from: "22:00", to: "01:00" } }, fields("body.window.days")),
    make("an unknown term", { colour: "red" }, fields("body.colour")),
    make("a cap of nobody", { maxConcurrent: 0 }, fields("body.maxConcurrent")),
    make(
      "a timeout of a state that is over",
      { timeoutsSeconds: { failed: 5 } },
      fields("body.timeoutsSeconds.failed"),
    ),
    make("a group with a NUL", { groups: ["a\0"] }, fields("body.groups.0")),
    make("a group that is no name", { groups: ["a b"] }, { code: "INVALID_FIELD" }),
    make("phases that do not grow", { phases: [phase, phase] }, { code: "INVALID_FIELD" }),
    make("phases beside another share", { phases: [phase], percentage: 20 }, { code: "INVALID_FIELD" }),
    make("a filter that is a list", { attributeFilter: [leaf] }, fields("body.attributeFilter")),
    make(
      "a filter with an unknown operator",
      { attributeFilter: { attribute: "a", gt: 1 } },
      { code: "INVALID_FIELD" },
    ),
    make("a filter of 33 nodes", { attributeFilter: { all: Array(32).fill(leaf) } }, { code: "INVALID_FIELD" }),
    make("a filter on a name with a NUL", { attributeFilter: { ...leaf, attribute: "\0" } }, { code: "INVALID_FIELD" }),
    { title: "a rollout that is none", method: "PATCH", path: `/v1/rollouts/${NO_ID}`, body: "{}", ...none },
    { title: "a step of a rollout that is none", path: `/v1/rollouts/${NO_ID}/start`, ...none },
    {
      title: "a step that is none",
      path: `/v1/rollouts/${NO_ID}/explode`,
      ...{ token: "operator", status: 404, code: "ROUTE_NOT_FOUND" },
    },
    { title: "a rollout of a firmware that is none", path: `/v1/firmware/${NO_ID}/rollouts`, body: "{}", ...none },
    {
      title: "an allow-list's change of no device",
      path: `/v1/rollouts/${NO_ID}/devices`,
      ...{ token: "operator", body: '{"deviceIds":[]}', status: 422, ...fields("body.deviceIds") },
    },
    {
      title: "rollouts in a state that is none",
      method: "GET",
      path: "/v1/rollouts?state=asleep",
      ...{ token: "operator", status: 422, ...fields("query.state") },
    },
  ];
}
