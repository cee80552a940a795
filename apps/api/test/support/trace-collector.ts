import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A span as the collector has received it. */
export interface CollectedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** `undefined`: it has no parent. */
  readonly parentSpanId: string | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly durationMs: number;
  readonly failed: boolean;
}

/** A collector of traces that takes OTLP as JSON over HTTP. */
export interface TraceCollector extends AsyncDisposable {
  readonly url: string;
  readonly spans: readonly CollectedSpan[];
  /** All that was sent, as it came. */
  readonly bodies: readonly string[];
}

export async function startTraceCollector(): Promise<TraceCollector> {
  const spans: CollectedSpan[] = [];
  const bodies: string[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    const body = await text(request);
    bodies.push(body);
    if (request.url === "/v1/traces") spans.push(...spansOf(body));
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    bodies,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function spansOf(body: string): CollectedSpan[] {
  // biome-ignore lint/suspicious/noExplicitAny: OTLP's JSON, of which a test reads a few fields
  const { resourceSpans } = JSON.parse(body) as any;
  const found: CollectedSpan[] = [];
  for (const { scopeSpans } of resourceSpans) {
    for (const { spans } of scopeSpans) {
      for (const span of spans) {
        found.push({
          ...{
            name: span.name,
            traceId: span.traceId,
            spanId: span.spanId,
            parentSpanId: span.parentSpanId || undefined,
          },
          attributes: Object.fromEntries(span.attributes.map(attributeOf)),
          durationMs: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
          failed: span.status?.code === 2,
        });
      }
    }
  }
  return found;
}

function attributeOf({ key, value }: { key: string; value: Record<string, unknown> }): [string, unknown] {
  return [key, Object.values(value)[0]];
}
