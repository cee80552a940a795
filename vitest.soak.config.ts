import { defineConfig } from "vitest/config";
import base from "./vitest.config.ts";

/** Long random runs, one file after the other: `pnpm test:soak`. Each prints its progress and its figures. */
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ["{packages,apps}/*/test/**/*.soak.ts"],
    testTimeout: 3_600_000,
    fileParallelism: false,
    disableConsoleIntercept: true,
  },
});
