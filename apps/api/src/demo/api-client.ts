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
    const response = await fetch(`${this.#url}${path}`, {
      method,
      signal: this.#signal,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(body === undefined ? {} : { "content-type": isBytes ? "application/octet-stream" : "application/json" }),
      },
      ...(body === undefined ? {} : { body: isBytes ? new Uint8Array(body) : JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as ApiAnswer["body"] };
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
