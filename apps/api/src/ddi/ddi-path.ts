import { HttpProblem } from "../http/problems.ts";

/** The address of a DDI request, in its parts. */
export interface DdiPath {
  readonly controllerId: string;
  /** What comes after the device's base, decoded: `["deploymentBase", "5"]`. */
  readonly segments: readonly string[];
}

/** Whether a URL is one of DDI's. */
export function isDdiUrl(url: string): boolean {
  return DDI.test(url);
}

const DDI = /^\/[^/?]+\/controller\/v1(?:[/?]|$)/;

/** The one tenant that there is; clients write it in any case. */
const TENANT = "DEFAULT";

/** hawkBit's limit. What serials there can be is the domain's to say. */
const MAX_CONTROLLER_ID = 256;

/**
 * Reads the address; each part is percent-decoded once.
 *
 * @throws {HttpProblem} `ROUTE_NOT_FOUND` on another tenant, and without a controller id; `REQUEST_INVALID` on an id that
 * no device can have.
 */
export function readDdiPath(url: string): DdiPath {
  const [path = ""] = url.split("?", 1);
  const [, tenant = "", , , controllerId, ...segments] = path.split("/");
  if (decode(tenant).toUpperCase() !== TENANT) throw notFound("There is no such tenant: the only one is DEFAULT.");
  if (controllerId === undefined || controllerId === "") throw notFound("The address ends before the controller id.");
  const id = decode(controllerId);
  if (id.length > MAX_CONTROLLER_ID || /\s/.test(id)) {
    throw new HttpProblem("REQUEST_INVALID", {
      detail: `A controller id has 1 to ${MAX_CONTROLLER_ID} characters and no white space.`,
    });
  }
  return { controllerId: id, segments: segments.map(decode) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new HttpProblem("REQUEST_INVALID", { detail: "The path's percent-encoding is not valid." });
  }
}

export function notFound(detail: string): HttpProblem {
  return new HttpProblem("ROUTE_NOT_FOUND", { detail });
}
