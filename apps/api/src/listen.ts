import { once } from "node:events";
import { createServer, type Server } from "node:net";
import type { Config } from "./config.ts";

/** Where a server listens. */
export type ListenAddress = Pick<Config["http"], "host" | "port">;

/** Somebody else listens at the address. */
export class PortInUseError extends Error {
  /** For whoever starts the service by a program; it stands in the message as well. */
  readonly code = "PORT_IN_USE";

  constructor({ host, port }: ListenAddress, cause: unknown) {
    super(
      `Port ${port} of ${host} is in use already (PORT_IN_USE). Choose another one with PORT, or end what listens there.`,
      { cause },
    );
    this.name = "PortInUseError";
  }
}

/**
 * How many connections may wait to be accepted, up to what the system allows. A fleet that comes back at once opens
 * thousands; one that finds no room is tried again by its device's system after 1, 3, 7, 15 s and longer.
 */
const LISTEN_BACKLOG = 4_096;

/**
 * Resolves with the address that a client on this machine reaches the server by.
 *
 * @throws {PortInUseError} and Node's own errors, such as `EACCES`.
 */
export async function listen(server: Server, { host, port }: ListenAddress): Promise<string> {
  server.listen({ host, port, backlog: LISTEN_BACKLOG });
  await once(server, "listening").catch((error: unknown) => {
    const isTaken = error instanceof Error && "code" in error && error.code === "EADDRINUSE";
    throw isTaken ? new PortInUseError({ host, port }, error) : error;
  });
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("The server has no address.");
  const everywhere = host === "0.0.0.0" || host === "::";
  const name = everywhere ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return `http://${name}:${address.port}`;
}

/**
 * Listens for a moment, to know of an address that cannot be had before anything is made that takes long. Whoever takes
 * it afterwards is noticed by {@link listen}.
 *
 * @throws as {@link listen} does.
 */
export async function probeAddress(address: ListenAddress): Promise<void> {
  const server = createServer((socket) => socket.destroy());
  await listen(server, address);
  server.close();
  await once(server, "close");
}
