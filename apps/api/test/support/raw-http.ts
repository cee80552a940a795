import { connect } from "node:net";

/** An answer, read whole. */
export interface RawAnswer {
  readonly status: number;
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a body is whatever JSON the service sends
  readonly body: any;
}

/** Sends bytes as they are, which no HTTP client would, and reads one answer. */
export function sendRaw(url: string, bytes: Buffer): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    let received = "";
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    socket.setEncoding("utf8").on("error", reject);
    socket.on("close", () => {
      // What answers HEAD tells a length and has no body: it ends with its connection.
      const answer = parse(received, { ended: bytes.toString("latin1", 0, 5) === "HEAD " });
      if (answer === undefined) reject(new Error(`no whole answer: ${JSON.stringify(received)}`));
      else resolve(answer);
    });
    socket.on("data", (chunk: string) => {
      received += chunk;
      const answer = parse(received, { ended: false });
      if (answer === undefined) return;
      resolve(answer);
      socket.destroy();
    });
  });
}

/** `undefined`: there is more to come. */
function parse(received: string, { ended }: { readonly ended: boolean }): RawAnswer | undefined {
  const end = received.indexOf("\r\n\r\n");
  if (end === -1) return undefined;
  const [statusLine = "", ...lines] = received.slice(0, end).split("\r\n");
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 2)]),
  );
  const text = received.slice(end + 4);
  if (!ended && Buffer.byteLength(text) < Number(headers["content-length"] ?? 0)) return undefined;
  const body: unknown = text === "" ? undefined : JSON.parse(text);
  return { status: Number(statusLine.split(" ")[1]), headers, text, body };
}
