export { hasPostgres, hasPostgresBinaries, hasRedis } from "./binaries.ts";
export { freePort } from "./free-port.ts";
export type { PostgresServer, StartPostgresOptions } from "./postgres-server.ts";
export { startPostgres } from "./postgres-server.ts";
export type { RedisServer, StartRedisOptions } from "./redis-server.ts";
export { startRedis } from "./redis-server.ts";
export type { HoldDirection, TcpProxy, TcpProxyOptions } from "./tcp-proxy.ts";
export { startTcpProxy } from "./tcp-proxy.ts";
export { createTestDatabase } from "./test-database.ts";
