import { describeConcurrency } from "./concurrency-cases.ts";

describeConcurrency({ processes: 8, checks: 200, killRounds: 10, hungSeconds: 20, hungP99Ms: 500 });
