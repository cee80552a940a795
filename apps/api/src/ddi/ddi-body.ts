import { requireDevice } from "@ota/domain";
import { readWhole } from "../http/json-body.ts";
import { HttpProblem } from "../http/problems.ts";
import { requireJsonType } from "./content-types.ts";
import type { DdiRequest } from "./route.ts";

/** Clients send whole logs: what is kept of them is cut, but they are never refused for their length. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;

/**
 * Reads a body as text, also where it is not quite UTF-8; with `leniently` also where its type is not quite JSON's.
 *
 * @throws {HttpProblem} `MEDIA_TYPE_UNSUPPORTED`; when it is far too large, late or cut off.
 */
export async function readText(
  { exchange: { request }, bodyTimeoutMs: timeoutMs }: DdiRequest,
  { leniently = false }: { readonly leniently?: boolean } = {},
): Promise<string> {
  requireJsonType(request, { leniently });
  return new TextDecoder().decode(await readWhole(request, { maxBytes: MAX_BODY_BYTES, timeoutMs }));
}

/** JSON, or what becomes of it with the control characters that some clients leave in their log lines. */
export function parseLeniently(text: string): unknown {
  for (const candidate of [text, text.replaceAll(CONTROL_CHARACTERS, " ")]) {
    try {
      return JSON.parse(candidate);
    } catch {
      // The next one may do; that none does is the caller's matter.
    }
  }
  return undefined;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones that JSON refuses within texts
const CONTROL_CHARACTERS = /[\u0000-\u001f]/g;

/** Refuses a body for its content, once the device is known to be one. */
export async function refuseBody({ services, credentials }: DdiRequest, detail: string): Promise<never> {
  await requireDevice(services.db, credentials);
  throw new HttpProblem("JSON_INVALID", { detail });
}

/** A value that is an object, and no list. */
export function asObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}
