import { context, propagation, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import type { Exchange } from "../http/exchange.ts";
import type { ServedRoute } from "../http/route.ts";

/** Serves a request within a span of its own. */
export type RequestTracer = (route: ServedRoute, exchange: Exchange, serve: () => Promise<void>) => Promise<void>;

/** A span for each request of a route, as a part of the trace that the request belongs to by its `traceparent`. */
export function requestTracer(tracer: Tracer): RequestTracer {
  return async (route, exchange, serve) => {
    const { request, response } = exchange;
    const caller = propagation.extract(context.active(), request.headers);
    const attributes = {
      "http.request.method": route.method,
      "http.route": route.path,
      "ota.request_id": exchange.requestId,
    };
    const span = tracer.startSpan(`${route.method} ${route.path}`, { kind: SpanKind.SERVER, attributes }, caller);
    if (span.isRecording()) exchange.note({ traceId: span.spanContext().traceId });
    try {
      await context.with(trace.setSpan(caller, span), serve);
    } finally {
      span.setAttribute("http.response.status_code", response.statusCode);
      const { problem } = exchange;
      if (problem !== undefined) span.setAttribute("error.type", problem);
      if (response.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    }
  };
}
