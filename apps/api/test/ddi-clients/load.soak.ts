import { describeLoad } from "./load-cases.ts";

describeLoad({ devices: 1_000, secondMs: 1_000, env: { OTA_OVERLOAD_SPREAD_SECONDS: "15" } });
