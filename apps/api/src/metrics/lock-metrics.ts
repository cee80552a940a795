import { onLockEvent } from "@ota/lock-core";
import { Counter, Histogram, type Registry } from "prom-client";

const HOLD_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

/** Counts what the locks of this process tell. Returns what ends it. */
export function lockMetrics(registry: Registry): () => void {
  const registers = [registry];
  const refused = new Counter({
    name: "ota_lock_attempts_refused_total",
    help: "Attempts at a lock that somebody else held; one acquire may make several",
    labelNames: ["store"],
    registers,
  });
  const timedOut = new Counter({
    name: "ota_lock_timeouts_total",
    help: "Acquires that gave up waiting",
    labelNames: ["store"],
    registers,
  });
  const held = new Histogram({
    name: "ota_lock_hold_seconds",
    help: "How long leases were held until they were given back",
    labelNames: ["store"],
    buckets: HOLD_SECONDS,
    registers,
  });
  const lost = new Counter({
    name: "ota_lock_leases_lost_total",
    help: "Leases that were lost while their holder worked",
    labelNames: ["store"],
    registers,
  });
  const failed = new Counter({
    name: "ota_lock_store_failures_total",
    help: "Operations at which the lock store failed",
    labelNames: ["store", "operation"],
    registers,
  });
  const ends = [
    onLockEvent("ota:lock:contended", ({ store }) => refused.inc({ store })),
    onLockEvent("ota:lock:timed-out", ({ store }) => timedOut.inc({ store })),
    onLockEvent("ota:lock:released", ({ store, holdMs }) => held.observe({ store }, holdMs / 1000)),
    onLockEvent("ota:lock:lost", ({ store }) => lost.inc({ store })),
    onLockEvent("ota:lock:failed", ({ store, operation }) => failed.inc({ store, operation })),
  ];
  return () => {
    for (const end of ends) end();
  };
}
