import { SpanKind, SpanStatusCode, type Tracer } from "@opentelemetry/api";
import type { StatementObserver } from "../postgres-client.ts";

/** A span for each statement, with its text; values are parameters and are not in it. */
export function statementTracer(tracer: Tracer): StatementObserver {
  return (text) => {
    const name = /^\s*(\w+)/.exec(text)?.[1]?.toUpperCase() ?? "statement";
    const attributes = { "db.system.name": "postgresql", "db.query.text": text };
    const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes });
    return (outcome) => {
      if (outcome === "failed") span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    };
  };
}
