import type { ServerResponse } from "node:http";
import type { Exchange } from "./exchange.ts";
import { type HttpProblem, PROBLEMS } from "./problems.ts";

/** Header names and values by turns, as `writeHead` takes them fastest. */
export type FlatHeaders = readonly string[];

/** Sends a JSON body, or none where `body` is `undefined`. */
export function sendJson(
  { response, requestId }: Exchange,
  answer: {
    readonly status: number;
    readonly body?: unknown;
    readonly type?: string;
    readonly headers?: Readonly<Record<string, string | number>> | undefined;
    readonly baseHeaders: FlatHeaders;
  },
): void {
  const text = answer.body === undefined ? undefined : JSON.stringify(answer.body);
  const headers = ["X-Request-Id", requestId, ...answer.baseHeaders];
  if (text !== undefined) {
    headers.push("Content-Type", answer.type ?? "application/json; charset=utf-8");
    headers.push("Content-Length", String(Buffer.byteLength(text)));
  } else if (answer.status !== 204 && answer.status !== 304) {
    headers.push("Content-Length", "0");
  }
  for (const name in answer.headers) headers.push(name, String(answer.headers[name]));
  response.writeHead(answer.status, headers).end(text);
}

/** Lets a handler write the answer by itself, which then has the headers that every answer carries. */
export async function sendStream(
  { response, requestId }: Exchange,
  {
    stream,
    baseHeaders,
  }: { readonly stream: (response: ServerResponse) => Promise<void>; readonly baseHeaders: FlatHeaders },
): Promise<void> {
  response.setHeader("X-Request-Id", requestId);
  for (let i = 0; i + 1 < baseHeaders.length; i += 2)
    response.setHeader(baseHeaders[i] ?? "", baseHeaders[i + 1] ?? "");
  await stream(response);
}

/** Sends a problem as RFC 9457 has it. */
export function sendProblem(exchange: Exchange, problem: HttpProblem, baseHeaders: FlatHeaders): void {
  const { status, title } = PROBLEMS[problem.code];
  sendJson(exchange, {
    status,
    type: "application/problem+json; charset=utf-8",
    headers: problem.headers,
    baseHeaders,
    body: {
      ...problem.members,
      type: `/docs#${problem.code}`,
      title,
      status,
      code: problem.code,
      detail: problem.message,
      requestId: exchange.requestId,
    },
  });
}
