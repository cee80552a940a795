import { Gauge, type Registry } from "prom-client";
import type { PoolLoad } from "../statement-flow.ts";

/** Shows the database's connections as they are when somebody asks. */
export function poolMetrics(registry: Registry, poolLoad: () => PoolLoad): void {
  const connections = new Gauge({
    name: "ota_database_connections",
    help: "Connections to the database: limit, open, and in_use (a statement is on its way there)",
    labelNames: ["state"],
    registers: [registry],
    collect() {
      const { size, open, inUse } = poolLoad();
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
      const { sent, waiting } = poolLoad();
      statements.set({ state: "sent" }, sent);
      statements.set({ state: "waiting" }, waiting);
    },
  });
  const oldest = new Gauge({
    name: "ota_database_oldest_statement_seconds",
    help: "How long the oldest statement without an answer has waited",
    registers: [registry],
    collect() {
      oldest.set(poolLoad().oldestMs / 1000);
    },
  });
}
