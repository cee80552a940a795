import { ATTEMPT_CASES } from "./attempts.ts";
import { AUDIENCE_CASES } from "./audience.ts";
import type { Case } from "./case.ts";
import { LIVE_CASES } from "./live.ts";
import { OFFER_CASES } from "./offers.ts";
import { LIMIT_CASES, TARGET_CASES } from "./rollouts.ts";
import { STEP_CASES } from "./steps.ts";

/** Every case by its topic. */
export const CASES: readonly (readonly [string, readonly Case[]])[] = [
  ["what is offered", OFFER_CASES],
  ["who is offered it", AUDIENCE_CASES],
  ["whom a rollout addresses", TARGET_CASES],
  ["when, and to how many", LIMIT_CASES],
  ["steps on the way", STEP_CASES],
  ["attempts", ATTEMPT_CASES],
  ["open attempts", LIVE_CASES],
];
