import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** The image that the demonstration publishes, and where it comes from. */
export interface FirmwareImage {
  readonly bytes: Buffer;
  readonly sha256: string;
  readonly fileName: string;
  /** As semver. */
  readonly version: string;
  /** For people. */
  readonly origin: string;
}

/**
 * A real image that anybody may publish: the firmware of the LEGO SPIKE Prime hub by the Pybricks project, which its npm
 * package carries under the MIT license.
 */
export function primeHubImage(): FirmwareImage {
  const require = createRequire(import.meta.url);
  const manifest = require("@pybricks/firmware/package.json") as { version: string; firmwareTag: string };
  const fileName = "primehub.zip";
  const path = join(dirname(require.resolve("@pybricks/firmware/package.json")), "build", fileName);
  const bytes = readFileSync(path);
  return {
    bytes,
    fileName,
    sha256: createHash("sha256").update(bytes).digest("hex"),
    version: semverOf(manifest.firmwareTag),
    origin:
      `Pybricks firmware ${manifest.firmwareTag} for the LEGO SPIKE Prime hub, by the Pybricks Authors (MIT), ` +
      `from the npm package @pybricks/firmware ${manifest.version}`,
  };
}

/** Their beta tags are written like v4.0.0b5. */
function semverOf(tag: string): string {
  const [, core = "1.0.0", beta] = /^v(\d+\.\d+\.\d+)(?:b(\d+))?$/.exec(tag) ?? [];
  return beta === undefined ? core : `${core}-beta.${beta}`;
}
