import { Agent, request } from "node:http";

/** One answer to a device. */
export interface StormAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a body is whatever JSON the service sends
  readonly body: any;
  readonly durationMs: number;
  /** What `Retry-After` says; `undefined`: nothing. */
  readonly retryAfterSeconds: number | undefined;
}

/** What a device sends. */
export interface StormRequest {
  readonly path: string;
  readonly token: string;
  readonly json: unknown;
}

/** Sends what devices send on connections of its own, much of it at once. */
export interface CheckSender extends Disposable {
  /** Resolves with the answer; with status 0 where the connection broke, which is all that a dying process may do. */
  post(url: string, request: StormRequest): Promise<StormAnswer>;
  /** As {@link post}, for the check of a device that runs 1.0.0. */
  check(url: string, token: string): Promise<StormAnswer>;
}

/** A sender with as many connections as it has requests in flight, up to a limit; they are kept between storms. */
export function createCheckSender(
  options: {
    /** To each process. @default no limit */
    readonly maxConnections?: number;
  } = {},
): CheckSender {
  const agent = new Agent({ keepAlive: true, maxSockets: options.maxConnections ?? Number.POSITIVE_INFINITY });
  const post = (url: string, request: StormRequest) => send(agent, url, request);
  return {
    post,
    check: (url, token) => post(url, { path: "/v1/check", token, json: { version: "1.0.0" } }),
    [Symbol.dispose]: () => agent.destroy(),
  };
}

function send(agent: Agent, url: string, { path, token, json }: StormRequest): Promise<StormAnswer> {
  const startedAt = performance.now();
  return new Promise((resolve) => {
    const broken = (): void => {
      const durationMs = performance.now() - startedAt;
      resolve({ status: 0, body: undefined, durationMs, retryAfterSeconds: undefined });
    };
    const outgoing = request(
      `${url}${path}`,
      { method: "POST", agent, headers: { authorization: `Bearer ${token}`, "content-type": "application/json" } },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        response.on("error", broken);
        response.on("end", () => {
          const retryAfter = response.headers["retry-after"];
          resolve({
            ...{ status: response.statusCode ?? 0, body: JSON.parse(text), durationMs: performance.now() - startedAt },
            retryAfterSeconds: retryAfter === undefined ? undefined : Number(retryAfter),
          });
        });
      },
    );
    outgoing.on("error", broken);
    outgoing.end(JSON.stringify(json));
  });
}

/** The value below which the given part of the values lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
}
