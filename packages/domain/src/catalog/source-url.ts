import { invalidField } from "../fields.ts";

/** Longer ones do not fit into what small clients keep of a Location header. */
const MAX_URL_LENGTH = 2048;

/**
 * Refuses what devices could not be sent to as it is: the text goes into a Location header unchanged, since a host may
 * sign its URLs letter by letter. Only characters that RFC 3986 allows in a URL are accepted, and no fragment, which no
 * client would send.
 */
export function requireSourceUrl(text: string): void {
  const url = /^https?:\/\/[A-Za-z0-9\-._~:/?[\]@!$&'()*+,;=%]+$/.test(text) ? URL.parse(text) : null;
  const valid = url !== null && text.length <= MAX_URL_LENGTH && url.username === "" && url.password === "";
  if (!valid) {
    invalidField(
      "sourceUrl",
      `an absolute http:// or https:// URL of at most ${MAX_URL_LENGTH} characters, without user, password and fragment`,
    );
  }
}

/** What the audit log keeps of it for ever: not the query, in which some hosts take a secret. */
export function auditedUrl(sourceUrl: string): string {
  const { origin, pathname } = new URL(sourceUrl);
  return `${origin}${pathname}`;
}
