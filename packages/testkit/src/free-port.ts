import { createServer } from "node:net";

/**
 * Below Linux's range for outgoing connections (32768 and up): a client that keeps reconnecting to a server that is
 * down could otherwise be given the server's own port as its source port, and would then be connected to itself.
 */
const firstPort = 20_000;
const portCount = 12_000;

/**
 * A TCP port of 127.0.0.1 that nothing listens on, outside the range of outgoing connections.
 * It is not reserved: another process may take it before the caller does, so a server start should try again.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = firstPort + Math.floor(Math.random() * portCount);
    if (await isFree(port)) return port;
  }
}

/** Starts something on a free port, on another one when a process took the port just before. */
export async function launchOnFreePort<T>(launch: (port: number) => Promise<T>): Promise<{ port: number; started: T }> {
  for (;;) {
    const port = await freePort();
    try {
      return { port, started: await launch(port) };
    } catch (error) {
      if (!(error instanceof Error && /address already in use/i.test(error.message))) throw error;
    }
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE" || error.code === "EACCES") resolve(false);
      else reject(error);
    });
    server.listen({ host: "127.0.0.1", port }, () => server.close(() => resolve(true)));
  });
}
