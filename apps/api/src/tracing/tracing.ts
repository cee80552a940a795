import { setTimeout as sleep } from "node:timers/promises";
import { context, DiagLogLevel, diag, propagation, type Tracer, trace } from "@opentelemetry/api";
import type { Logger } from "pino";
import type { StatementObserver } from "../postgres-client.ts";
import { serviceVersion } from "../version.ts";
import { traceLocks } from "./lock-spans.ts";
import { type RequestTracer, requestTracer } from "./request-spans.ts";
import { statementTracer } from "./statement-spans.ts";

/** Traces of this process, while it makes any. */
export interface Tracing {
  readonly tracer: Tracer;
  readonly traceRequest: RequestTracer;
  readonly traceStatement: StatementObserver;
  /** Sends what has not been sent yet, and ends. */
  stop(): Promise<void>;
}

/** What {@link startTracing} needs. */
export interface TracingOptions {
  /** The part of requests that are traced, where their sender has not decided it. */
  readonly percent: number;
  readonly logger: Logger;
}

/** Tracing was asked for, and what it needs is not installed. */
export class TracingUnavailableError extends Error {
  constructor(cause: unknown) {
    super(
      "OTA_TRACING=on needs the optional packages of @opentelemetry, which are not installed. Install the service with its " +
        "optional dependencies, or set OTA_TRACING=off.",
      { cause },
    );
    this.name = "TracingUnavailableError";
  }
}

/**
 * Loads the SDK and starts it for the process: spans go to an OTLP collector by HTTP, and the standard variables
 * (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SERVICE_NAME` and so on) say where to and under what name. An SDK that was set up
 * before, such as by `--import`, is used instead. Until this is called nothing is loaded, and nothing is traced.
 *
 * @throws {TracingUnavailableError}
 */
export async function startTracing(options: TracingOptions): Promise<Tracing> {
  const stopSdk = await startSdk(options);
  const tracer = trace.getTracer("ota-api", serviceVersion);
  const stopLocks = traceLocks(tracer);
  return {
    tracer,
    traceRequest: requestTracer(tracer),
    traceStatement: statementTracer(tracer),
    async stop() {
      stopLocks();
      await stopSdk();
    },
  };
}

async function startSdk({ percent, logger }: TracingOptions): Promise<() => Promise<void>> {
  const { BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler, TracerProvider } = await installed(
    import("@opentelemetry/sdk-trace"),
  );
  const { AsyncLocalStorageContextManager } = await installed(import("@opentelemetry/context-async-hooks"));
  const { W3CTraceContextPropagator } = await installed(import("@opentelemetry/core"));
  const { OTLPTraceExporter } = await installed(import("@opentelemetry/exporter-trace-otlp-http"));
  const resources = await installed(import("@opentelemetry/resources"));

  const ours = { "service.name": "ota-api", "service.version": serviceVersion };
  const { resourceAttributesEnvDetector, serviceNameEnvDetector } = resources;
  const fromEnvironment = resources.detectResources({
    detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector],
  });
  const provider = new TracerProvider({
    resource: resources.defaultResource().merge(resources.resourceFromAttributes(ours)).merge(fromEnvironment),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(percent / 100) }),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  });
  if (!trace.setGlobalTracerProvider(provider)) {
    await provider.shutdown();
    return async () => {};
  }
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  logProblems(logger);
  return async () => {
    const sent = await Promise.race([provider.shutdown().then(() => true, isNotSent), late()]);
    if (!sent) logger.warn("the last traces could not be sent");
    for (const api of [trace, context, propagation, diag]) api.disable();
  };
}

/** How long the end of the service waits for a collector that may be away. */
const LAST_SEND_MS = 3000;

function late(): Promise<false> {
  return sleep(LAST_SEND_MS, false, { ref: false });
}

function isNotSent(): false {
  return false;
}

/** What the SDK has to say goes where everything else does: a collector that is away must be seen. */
function logProblems(logger: Logger): void {
  const say = (message: string): void => logger.warn({ detail: message }, "traces");
  const quiet = (): void => {};
  diag.setLogger({ error: say, warn: say, info: quiet, debug: quiet, verbose: quiet }, DiagLogLevel.WARN);
}

async function installed<T>(loading: Promise<T>): Promise<T> {
  try {
    return await loading;
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND" ? new TracingUnavailableError(error) : error;
  }
}
