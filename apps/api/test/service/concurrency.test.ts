import { describeConcurrency } from "./concurrency-cases.ts";

// The small form, for every run; concurrency.soak.ts has the full one.
describeConcurrency({ processes: 3, checks: 60, killRounds: 2, hungSeconds: 4, hungP99Ms: 1000 });
