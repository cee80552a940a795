import type { CheckEvent, CheckObserver } from "@ota/domain";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** From what one round trip takes to what a check waits at most. */
const LOCK_WAIT_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

/** Counts what checks do, and how attempts move, whoever moves them. */
export function checkMetrics(registry: Registry): CheckObserver {
  const registers = [registry];
  const checks = new Counter({
    name: "ota_checks_total",
    help: "Checks answered, by decision; reason says why there is no update, or how the update was found",
    labelNames: ["decision", "reason"],
    registers,
  });
  const opened = new Counter({ name: "ota_attempts_opened_total", help: "Upgrade attempts opened", registers });
  const moved = new Counter({
    name: "ota_attempt_moves_total",
    help: "Upgrade attempts that moved, by the state that they are in since; cancelled has those deleted with their device",
    labelNames: ["to"],
    registers,
  });
  const lockWait = new Histogram({
    name: "ota_check_lock_wait_seconds",
    help: "How long checks waited for their lock, by what came of it: acquired, contended (held by others all the time), fault",
    labelNames: ["outcome"],
    buckets: LOCK_WAIT_SECONDS,
    registers,
  });
  const lockSkipped = new Counter({
    name: "ota_check_lock_skipped_total",
    help: "Checks that did not ask for their lock, as its store was at fault a moment ago",
    registers,
  });
  const outage = new Gauge({
    name: "ota_check_lock_outage",
    help: "1 while the lock store is taken to be away",
    registers,
  });
  const conflicts = new Counter({
    name: "ota_check_conflicts_lost_total",
    help: "Checks that met another process in the database, where the lock should have kept them apart",
    registers,
  });

  return (event: CheckEvent): void => {
    switch (event.kind) {
      case "decided":
        checks.inc({ decision: event.decision, reason: event.decision === "update" ? event.how : event.reason });
        break;
      case "created":
        opened.inc();
        break;
      case "moved":
        moved.inc({ to: event.to });
        break;
      case "lock":
        lockWait.observe({ outcome: event.outcome }, event.waitedMs / 1000);
        break;
      case "lock_skipped":
        lockSkipped.inc();
        break;
      case "breaker":
        outage.set(event.state === "open" ? 1 : 0);
        break;
      case "conflict_lost":
        conflicts.inc();
        break;
    }
  };
}
