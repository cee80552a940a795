import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { json } from "node:stream/consumers";

/** As many connections as there are requests at once. Half the cost of `fetch`, which would be counted as the service's. */
const AGENT = new Agent({ keepAlive: true });

/** One answer of the service. */
export interface ApiAnswer {
  readonly status: number;
  // The demonstration reads fields that the reference promises; what is not there fails it loudly.
  readonly body: Readonly<Record<string, unknown>>;
}

/** Calls the service's JSON API as somebody. */
export class ApiClient {
  readonly #url: string;
  readonly #token: string;
  readonly #signal: AbortSignal;

  constructor(options: { readonly url: string; readonly token: string; readonly signal: AbortSignal }) {
    this.#url = options.url;
    this.#token = options.token;
    this.#signal = options.signal;
  }

  /** Sends a request, whatever its answer. */
  async send(method: "GET" | "POST", path: string, body?: unknown): Promise<ApiAnswer> {
    const isBytes = body instanceof Uint8Array;
    const content = isBytes ? body : body === undefined ? undefined : JSON.stringify(body);
    const sending = request(`${this.#url}${path}`, {
      method,
      agent: AGENT,
      signal: this.#signal,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(content === undefined ? {} : { "content-type": isBytes ? "application/octet-stream" : "application/json" }),
        ...(content === undefined ? {} : { "content-length": Buffer.byteLength(content) }),
      },
    });
    const [response] = (await once(sending.end(content), "response")) as [IncomingMessage];
    return { status: response.statusCode ?? 0, body: (await json(response)) as ApiAnswer["body"] };
  }

  /** Sends a request that must succeed. */
  async call(method: "GET" | "POST", path: string, body?: unknown): Promise<ApiAnswer["body"]> {
    const answer = await this.send(method, path, body);
    if (answer.status < 300) return answer.body;
    throw new Error(`${method} ${path} answered ${answer.status}: ${answer.body["detail"] ?? ""}`);
  }

  /** All items of a list, page by page. */
  async list(path: string): Promise<ApiAnswer["body"][]> {
    const items: ApiAnswer["body"][] = [];
    for (let cursor: unknown = ""; cursor !== null; ) {
      const page = await this.call("GET", `${path}&limit=200${cursor === "" ? "" : `&cursor=${cursor}`}`);
      items.push(...(page["items"] as ApiAnswer["body"][]));
      cursor = page["nextCursor"];
    }
    return items;
  }
}
