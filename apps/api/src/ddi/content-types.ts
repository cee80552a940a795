import type { IncomingMessage } from "node:http";
import { checkEncoding } from "../http/json-body.ts";
import { HttpProblem } from "../http/problems.ts";
import { DdiRefusal } from "./refusals.ts";

const HAL = "application/hal+json";
const JSON_TYPE = "application/json";
const CBOR = "application/cbor";

/** What a media range of `Accept` is answered with. Both types carry the same body. */
const ANSWERED: Readonly<Record<string, string>> = {
  "*/*": HAL,
  "application/*": HAL,
  [HAL]: HAL,
  [JSON_TYPE]: JSON_TYPE,
};

/**
 * The type to answer with: that of the first media range that can be had.
 *
 * @throws {DdiRefusal} 406 where none can.
 */
export function answeredType({ headers: { accept } }: IncomingMessage): string {
  if (accept === undefined || accept.trim() === "") return HAL;
  for (const range of accept.split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const answered = ANSWERED[type];
    if (answered !== undefined && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))) return answered;
  }
  throw new DdiRefusal({
    status: 406,
    errorCode: "hawkbit.server.error.rest.notAcceptable",
    message: `Only ${HAL} and ${JSON_TYPE} are answered here.`,
  });
}

/**
 * Refuses a body that says it is no JSON; with `leniently` only one that says it is CBOR, which no second reading makes JSON.
 * A body that does not say what it is, is read.
 *
 * @throws {HttpProblem} `MEDIA_TYPE_UNSUPPORTED`
 */
export function requireJsonType(request: IncomingMessage, { leniently }: { readonly leniently: boolean }): void {
  checkEncoding(request);
  const type = request.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase();
  if (type === undefined || type === JSON_TYPE || type === HAL || (leniently && type !== CBOR)) return;
  throw new HttpProblem("MEDIA_TYPE_UNSUPPORTED", {
    detail: `Send the body as ${JSON_TYPE}.`,
    headers: { Accept: JSON_TYPE },
  });
}
