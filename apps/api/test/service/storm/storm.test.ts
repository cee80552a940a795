import { describeStorm } from "./storm-cases.ts";

// The small form, for every run; storm.soak.ts has the full one.
describeStorm({
  ...{ processes: 2, devices: 300, rounds: 3, checksAtOnce: 4, devicesAtOnce: 60 },
  caps: { maxConcurrent: 6, maxTotal: 10 },
  faults: {
    "API killed": 2,
    "Redis killed": 1,
    "Redis shut down": 1,
    "PostgreSQL killed": 1,
    "PostgreSQL shut down": 1,
  },
  retrySecondMs: 100,
  // Turned away for load, devices would wait for longer than the test may take.
  env: { OTA_OVERLOAD_LOOP_DELAY_MS: "0", OTA_OVERLOAD_DATABASE_DELAY_MS: "0" },
});
