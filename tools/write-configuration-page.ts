import { writeFile } from "node:fs/promises";
import { configurationPage } from "../apps/api/src/config-reference.ts";

await writeFile(new URL("../docs/configuration.md", import.meta.url), configurationPage());
