import { describeStorm } from "./storm-cases.ts";

describeStorm({
  ...{ processes: 4, devices: 5_000, rounds: 5, checksAtOnce: 4, devicesAtOnce: 400 },
  caps: { maxConcurrent: 12, maxTotal: 60 },
  faults: {
    "API killed": 24,
    "Redis killed": 4,
    "Redis shut down": 4,
    "PostgreSQL killed": 4,
    "PostgreSQL shut down": 4,
  },
  retrySecondMs: 1_000,
  env: { OTA_OVERLOAD_SPREAD_SECONDS: "15" },
});
