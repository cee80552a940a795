import { Gauge, type Registry } from "prom-client";
import type { DatabasePool } from "../database.ts";

/** Shows the database's connections as they are when somebody asks. */
export function poolMetrics(registry: Registry, pool: DatabasePool): void {
  const connections = new Gauge({
    name: "ota_database_connections",
    help: "Connections to the database: limit, open, and in_use (a statement is on its way there)",
    labelNames: ["state"],
    registers: [registry],
    collect() {
      const { size, open, inUse } = pool.load();
      connections.set({ state: "limit" }, size);
      connections.set({ state: "open" }, open);
      connections.set({ state: "in_use" }, inUse);
    },
  });
  const statements = new Gauge({
    name: "ota_database_statements",
    help: "Statements without an answer yet: sent, and waiting for a connection",
    labelNames: ["state"],
    registers: [registry],
    collect() {
      const { sent, waiting } = pool.load();
      statements.set({ state: "sent" }, sent);
      statements.set({ state: "waiting" }, waiting);
    },
  });
  const oldest = new Gauge({
    name: "ota_database_oldest_statement_seconds",
    help: "How long the oldest statement without an answer has waited",
    registers: [registry],
    collect() {
      oldest.set(pool.load().oldestMs / 1000);
    },
  });
}
