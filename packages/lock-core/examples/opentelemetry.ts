import { metrics, SpanStatusCode, trace } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { type LeaseEvent, LockFactory, MemoryStore, onLockEvent } from "@ota/lock-core";

/** Makes spans and metrics of what all locks of this process do. Call it once, when the SDK has been set up. */
function observeLocks(): void {
  const meter = metrics.getMeter("locks");
  const tracer = trace.getTracer("locks");
  const waits = meter.createHistogram("lock.wait", { unit: "ms" });
  const holds = meter.createHistogram("lock.hold", { unit: "ms" });
  const failures = meter.createCounter("lock.failures");

  onLockEvent("ota:lock:acquired", ({ store, waitMs }) => waits.record(waitMs, { store, outcome: "acquired" }));
  onLockEvent("ota:lock:timed-out", ({ store, waitMs }) => waits.record(waitMs, { store, outcome: "timed-out" }));
  onLockEvent("ota:lock:failed", ({ store, operation, error }) => {
    failures.add(1, { store, operation, code: error.code });
  });
  onLockEvent("ota:lock:released", (event) => ended(event, { code: SpanStatusCode.OK }));
  onLockEvent("ota:lock:lost", (event) => ended(event, { code: SpanStatusCode.ERROR, message: event.reason }));

  function ended({ key, store, mode, holdMs }: LeaseEvent, status: { code: SpanStatusCode; message?: string }): void {
    holds.record(holdMs, { store }); // keys are many: they belong into spans, not into metrics
    const attributes = { "lock.key": key, "lock.store": store, "lock.mode": mode };
    tracer
      .startSpan("lock.hold", { startTime: Date.now() - holdMs, attributes })
      .setStatus(status)
      .end();
  }
}

// The SDK as a test would set it up; an application exports to its collector.
const spans = new InMemorySpanExporter();
const points = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter: points });
trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: spans })] }));
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
observeLocks();

const lock = new LockFactory(new MemoryStore()).createLock("invoice:7");
await lock.run(async () => {
  await lock.acquire({ waitTimeoutMs: 20 }).catch(() => "still held");
});

await reader.forceFlush();
for (const { name, attributes, status } of spans.getFinishedSpans()) console.log(name, attributes, status);
for (const { descriptor, dataPoints } of points.getMetrics()[0]?.scopeMetrics[0]?.metrics ?? []) {
  for (const { attributes, value } of dataPoints) {
    console.log(descriptor.name, attributes, typeof value === "object" ? value.sum : value);
  }
}
await reader.shutdown();
