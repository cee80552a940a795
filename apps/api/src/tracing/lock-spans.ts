import { SpanStatusCode, type Tracer } from "@opentelemetry/api";
import { type LockEvents, onLockEvent } from "@ota/lock-core";

/** A span for each wait for a lock and each time that one was held, made when it is over. Returns what ends it. */
export function traceLocks(tracer: Tracer): () => void {
  const waited = ({ key, store, waitMs, attempts }: LockEvents["ota:lock:acquired"], outcome: string): void => {
    const attributes = { "ota.lock.key": key, "ota.lock.store": store, "ota.lock.attempts": attempts };
    const span = tracer.startSpan("lock wait", { startTime: Date.now() - waitMs, attributes });
    span.setAttribute("ota.lock.outcome", outcome);
    if (outcome !== "acquired") span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  };
  const held = ({ key, store, holdMs }: LockEvents["ota:lock:released"], outcome: string): void => {
    const attributes = { "ota.lock.key": key, "ota.lock.store": store, "ota.lock.outcome": outcome };
    const span = tracer.startSpan("lock held", { startTime: Date.now() - holdMs, attributes });
    if (outcome !== "released") span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  };
  const ends = [
    onLockEvent("ota:lock:acquired", (event) => waited(event, "acquired")),
    onLockEvent("ota:lock:timed-out", (event) => waited(event, "timed out")),
    onLockEvent("ota:lock:released", (event) => held(event, "released")),
    onLockEvent("ota:lock:lost", (event) => held(event, "lost")),
  ];
  return () => {
    for (const end of ends) end();
  };
}
