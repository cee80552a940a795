export { type AppDependencies, apiRoutes, createApp, createListener } from "./app.ts";
export { type Config, ConfigError, readConfig } from "./config.ts";
export type { Services } from "./services.ts";
