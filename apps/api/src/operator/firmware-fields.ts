import { z } from "zod";
import { plainText } from "../http/schemas.ts";
import { versionSchema } from "./fields.ts";

/** The name that devices are told. It goes into Content-Disposition as it is: no quoting, no second spelling. */
export const fileNameSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9 ._+()~-]{0,127}$/, "1 to 128 of the characters A-Z a-z 0-9 . _ + ( ) ~ - and space")
  .meta({
    description: "The name that devices are told. Absent: made of product and version.",
    example: "primehub.zip",
  });

/** A SHA-256 as it is given. Some tools print hashes in capitals. */
export const givenSha256Schema = givenHash(64);
export const givenSha1Schema = givenHash(40);
export const givenMd5Schema = givenHash(32);

export const requiresVersionSchema = versionSchema.meta({
  description:
    "The least version that a device must run before it may take this one. A device below it is led over steps. Older than its own version.",
});

/** A signature as it is given. */
export const givenSignatureSchema = plainText(200)
  .min(1)
  .meta({
    description:
      "The base64 of an Ed25519 signature, by the product's key, over five lines joined by line feeds, with none at the " +
      "end: `ota-fw-v1`, the product's name, the version, the size in bytes and the SHA-256 in lower case.",
  });

/** The file's name where none is given. */
export function fileNameOf(input: { readonly product: string; readonly version: string }): string {
  return `${input.product}-${input.version.replace(/[^A-Za-z0-9._+-]/g, "_")}.bin`;
}

function givenHash(digits: number) {
  return z
    .string()
    .toLowerCase()
    .regex(new RegExp(`^[0-9a-f]{${digits}}$`), `${digits} hexadecimal digits`);
}
