import { z } from "zod";
import { plainText } from "../http/schemas.ts";

/** A name of a channel: part of URLs, logs and metrics. */
export const channelSchema = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,62}$/, "1 to 63 of the characters a-z 0-9 . _ -, the first one a letter or digit");

/** A version as the operator writes it; the product's scheme decides whether it is one. */
export const versionSchema = plainText(128).min(1).meta({ example: "2.1.0" });

/** What a board calls its own revision. Without a comma, because lists of them are written with commas in a URL. */
export const hardwareRevisionSchema = plainText(128)
  .min(1)
  .regex(/^[^,]*$/, "holds a comma")
  .meta({ example: "rev-b" });

export const sha256Schema = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .meta({ description: "Hexadecimal, lower case." });
export const sha1Schema = z.string().regex(/^[0-9a-f]{40}$/);
export const md5Schema = z.string().regex(/^[0-9a-f]{32}$/);

/** A secret in an answer that is given once. */
export const secretSchema = z.string().meta({ description: "Shown this once: only its hash is kept." });
