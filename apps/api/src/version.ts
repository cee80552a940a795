import { readFileSync } from "node:fs";

/** The version of the service, from its package. The path is right from `src` and from `dist`. */
export const serviceVersion: string = (
  JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { version: string }
).version;
