import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import postgres, { type Sql } from "postgres";

/** The firmware that floors write records for. */
export const FLOOR_FIRMWARE_ID = "1";

/** What each floor's request says, where it says anything: a device and what it runs. */
export interface FloorCheck {
  readonly serial: string;
  readonly version: string;
}

/** Listens on a free port of this machine, and tells the process that started this one which it is. */
export async function serveFloor(listener: RequestListener): Promise<void> {
  const server = createServer({ keepAliveTimeout: 65_000 }, listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  process.send?.({ port: (server.address() as AddressInfo).port });
  process.once("disconnect", () => process.exit());
}

/** The database as the service opens it: postgres.js, which prepares tagged statements, and four connections. */
export function floorDatabase(): Sql {
  return postgres(floorVariable("DATABASE_URL"), { max: 4, max_lifetime: null, onnotice: () => {} });
}

export function floorVariable(name: "DATABASE_URL" | "REDIS_URL"): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`a floor needs ${name}`);
  return value;
}
