import { describeLoad } from "./load-cases.ts";

// The small form, for every run; load.soak.ts has the full one.
describeLoad({
  devices: 60,
  secondMs: 20,
  // Turned away for load, devices would wait for longer than the test may take.
  env: { OTA_OVERLOAD_LOOP_DELAY_MS: "0", OTA_OVERLOAD_DATABASE_DELAY_MS: "0" },
});
