import { Agent, request } from "node:http";

/** One answer to a check. */
export interface StormAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a body is whatever JSON the service sends
  readonly body: any;
  readonly durationMs: number;
}

/** Sends checks on connections of its own, many at once. */
export interface CheckSender extends Disposable {
  /** Resolves with the answer; with status 0 where the connection broke, which is all that a dying process may do. */
  check(url: string, token: string): Promise<StormAnswer>;
}

/** A sender with as many connections as it has requests in flight; they are kept between storms. */
export function createCheckSender(): CheckSender {
  const agent = new Agent({ keepAlive: true });
  return {
    check: (url, token) => send(agent, { url, token }),
    [Symbol.dispose]: () => agent.destroy(),
  };
}

function send(agent: Agent, { url, token }: { readonly url: string; readonly token: string }): Promise<StormAnswer> {
  const startedAt = performance.now();
  const durationMs = () => performance.now() - startedAt;
  return new Promise((resolve) => {
    const outgoing = request(
      `${url}/v1/check`,
      { method: "POST", agent, headers: { authorization: `Bearer ${token}`, "content-type": "application/json" } },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        response.on("end", () => {
          resolve({ status: response.statusCode ?? 0, body: JSON.parse(text), durationMs: durationMs() });
        });
      },
    );
    outgoing.on("error", () => resolve({ status: 0, body: undefined, durationMs: durationMs() }));
    outgoing.end('{"version":"1.0.0"}');
  });
}

/** The value below which the given part of the values lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
}
