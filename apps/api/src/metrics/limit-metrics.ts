import { Counter, Gauge, type Registry } from "prom-client";
import type { LimitObserver } from "../limits/events.ts";

/** Counts what the limits refuse. */
export function limitMetrics(registry: Registry): LimitObserver {
  const registers = [registry];
  const overloaded = new Gauge({
    name: "ota_overloaded",
    help: "1 while checks are turned away, by what is late: event-loop, database",
    labelNames: ["cause"],
    registers,
  });
  overloaded.set({ cause: "event-loop" }, 0);
  overloaded.set({ cause: "database" }, 0);
  const shed = new Counter({
    name: "ota_checks_shed_total",
    help: "Checks that were turned away for overload; ota_problems_total has them as SERVICE_BUSY as well",
    labelNames: ["cause"],
    registers,
  });
  const limited = new Counter({
    name: "ota_rate_limited_total",
    help: "Requests that were refused by a rate limit: check (of one device), failed_authentication (of one address)",
    labelNames: ["limit"],
    registers,
  });
  const notShared = new Counter({
    name: "ota_rate_counts_not_shared_total",
    help: "Counts that did not reach the other processes, as Redis was at fault",
    registers,
  });
  return (event) => {
    switch (event.kind) {
      case "overload":
        overloaded.set({ cause: event.cause }, event.active ? 1 : 0);
        break;
      case "shed":
        shed.inc({ cause: event.cause });
        break;
      case "limited":
        limited.inc({ limit: event.limit });
        break;
      case "not_shared":
        notShared.inc();
        break;
    }
  };
}
