import { z } from "zod";

/** Whom a trusted proxy vouches for, by the authority that it names: its devices are served as a gateway's. */
export type DdiAuthorities = ReadonlyMap<string, { readonly gatewayToken: string }>;

/** An authority has neither white space nor what separates it in a list; a token has no `=`. */
const PAIR = /^([^\s,;]{1,512})=([!-<>-~]{16,512})$/;

/** Reads `authority=gateway-token` pairs. Authorities are compared whatever their case. */
export function readAuthorities(text: string, context: z.RefinementCtx<string>): DdiAuthorities {
  const pairs = text.split(",").map((pair) => PAIR.exec(pair.trim()));
  const authorities = new Map(
    pairs.flatMap((pair) => (pair === null ? [] : [[(pair[1] ?? "").toLowerCase(), { gatewayToken: pair[2] ?? "" }]])),
  );
  if (authorities.size === pairs.length) return authorities;
  context.addIssue("not pairs, or one authority twice");
  return z.NEVER;
}
