import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { conditions: ["@ota/source"] },
  ssr: { resolve: { conditions: ["@ota/source"] } },
  test: {
    include: ["{packages,apps}/*/test/**/*.test.ts"],
    reporters: ["default", "./tools/plain-reporter.ts"],
    globalSetup: ["./packages/testkit/src/global-setup.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Two cores are the common CI machine; more workers only make timing-sensitive tests late.
    maxWorkers: 2,
  },
});
