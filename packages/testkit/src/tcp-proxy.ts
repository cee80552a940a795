import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { ProxyStream } from "./proxy-stream.ts";

/** Where {@link startTcpProxy} forwards to. */
export interface TcpProxyOptions {
  readonly target: { readonly host: string; readonly port: number };
}

/** Which bytes {@link TcpProxy.hold} keeps: what clients send, what the target sends, or both. */
export type HoldDirection = "requests" | "replies" | "both";

/**
 * A TCP proxy on 127.0.0.1 that injects network faults. It knows nothing of the protocol: a "request" is what a client
 * sends, a "reply" what the target sends. Faults apply to all connections, present and future, until {@link resume};
 * several can be set at once.
 */
export interface TcpProxy extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** How many connections are open now, to the client or to the target. */
  readonly connections: number;
  /**
   * Destroys all connections now, on both sides: what was on the way is lost. What the target has received, it may
   * still execute. New connections are served.
   */
  cut(): void;
  /** Accepts new connections and destroys them at once; those that exist go on. */
  refuse(): void;
  /**
   * Keeps the bytes of a direction, in order, and forwards them at {@link resume}: a link that hangs. The end of a
   * connection is kept too, so a request held while its client gives up and goes away still reaches the target later.
   * @default "both"
   */
  hold(direction?: HoldDirection): void;
  /**
   * Swallows what the target sends; requests go on and are executed. The swallowed replies never come, so after
   * {@link resume} a connection that waits for one is out of step: {@link cut} it.
   */
  dropReplies(): void;
  /**
   * Loses the reply to the n-th request from now: it reaches the target, is executed, and when the first byte of its
   * reply comes, its connection is destroyed with nothing of the reply forwarded. Earlier requests are answered, other
   * connections go on, and the fault has then happened. A request is counted when its reply begins, so requests sent
   * before the reply to an earlier one has come count as one.
   * @default 1
   */
  cutBeforeReply(n?: number): void;
  /** Forwards each byte `ms` milliseconds later, in both directions (a round trip takes 2 × `ms` longer). */
  delay(ms: number): void;
  /** Ends all faults and forwards what was held. */
  resume(): void;
  /** Destroys all connections and stops listening. May be called more than once. */
  close(): Promise<void>;
}

interface Faults {
  refuse: boolean;
  dropReplies: boolean;
  /** How many more replies until one is lost; undefined when none is to be lost. */
  repliesUntilCut: number | undefined;
}

interface Connection {
  readonly requests: ProxyStream;
  readonly replies: ProxyStream;
  /** True from a request sent while a cut is pending until its reply begins. */
  awaitsReply: boolean;
}

/** Starts a {@link TcpProxy} on a free port in front of `target`. */
export async function startTcpProxy(options: TcpProxyOptions): Promise<TcpProxy> {
  const faults: Faults = { refuse: false, dropReplies: false, repliesUntilCut: undefined };
  let held: HoldDirection | undefined;
  let delayMs = 0;
  const connections = new Set<Connection>();
  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    if (faults.refuse) client.destroy();
    else open(client);
  });
  listener.listen({ host: "127.0.0.1", port: 0 });
  await once(listener, "listening");
  listener.unref();

  function open(client: Socket): void {
    const target = connect({ ...options.target, allowHalfOpen: true, noDelay: true });
    const connection: Connection = {
      awaitsReply: false,
      requests: new ProxyStream({ from: client, to: target, accept: () => acceptRequest(connection) }),
      replies: new ProxyStream({ from: target, to: client, accept: () => acceptReply(connection) }),
    };
    connections.add(connection);
    for (const socket of [client, target]) {
      socket.once("close", () => {
        if (client.closed && target.closed) connections.delete(connection);
      });
    }
    applyTo(connection);
  }

  function acceptRequest(connection: Connection): boolean {
    if (faults.repliesUntilCut !== undefined) connection.awaitsReply = true;
    return true;
  }

  function acceptReply(connection: Connection): boolean {
    if (faults.repliesUntilCut !== undefined && connection.awaitsReply) {
      connection.awaitsReply = false;
      faults.repliesUntilCut--;
      if (faults.repliesUntilCut === 0) {
        faults.repliesUntilCut = undefined;
        destroy(connection);
        return false;
      }
    }
    return !faults.dropReplies;
  }

  function destroy(connection: Connection): void {
    connection.requests.destroy();
    connection.replies.destroy();
  }

  function applyTo(connection: Connection): void {
    connection.requests.shape({ held: held === "requests" || held === "both", delayMs });
    connection.replies.shape({ held: held === "replies" || held === "both", delayMs });
  }

  function applyToAll(): void {
    for (const connection of connections) applyTo(connection);
  }

  function cut(): void {
    for (const connection of connections) destroy(connection);
  }

  const proxy: TcpProxy = {
    host: "127.0.0.1",
    port: (listener.address() as AddressInfo).port,
    get connections() {
      return connections.size;
    },
    cut,
    refuse() {
      faults.refuse = true;
    },
    hold(direction = "both") {
      held = direction;
      applyToAll();
    },
    dropReplies() {
      faults.dropReplies = true;
    },
    cutBeforeReply(n = 1) {
      for (const connection of connections) connection.awaitsReply = false;
      faults.repliesUntilCut = n;
    },
    delay(ms) {
      delayMs = ms;
      applyToAll();
    },
    resume() {
      faults.refuse = false;
      faults.dropReplies = false;
      faults.repliesUntilCut = undefined;
      held = undefined;
      delayMs = 0;
      applyToAll();
    },
    async close() {
      cut();
      if (!listener.listening) return;
      await new Promise<void>((resolve) => listener.close(() => resolve()));
    },
    async [Symbol.asyncDispose]() {
      await proxy.close();
    },
  };
  return proxy;
}
