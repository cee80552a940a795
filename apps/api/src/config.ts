import { join, resolve } from "node:path";
import type { z } from "zod";
import type { Variable } from "./config-variable.ts";
import { VARIABLES, type VariableName } from "./config-variables.ts";
import type { DdiAuthorities } from "./ddi/ddi-authorities.ts";
import { type UnknownVariable, unknownVariables } from "./unknown-variables.ts";

/** Everything that can be set, read once at the start and never again. */
export interface Config {
  readonly http: {
    readonly host: string;
    readonly port: number;
    /** Without a trailing slash; `undefined`: made of host and port. */
    readonly publicUrl: string | undefined;
    /** Addresses, subnets and names of ranges whose forwarding headers are believed. */
    readonly trustedProxies: readonly string[];
    readonly bodyLimitBytes: number;
    readonly bodyTimeoutMs: number;
    readonly uploadTimeoutMs: number;
    readonly keepAliveMs: number;
  };
  readonly database: EmbeddedDatabaseConfig | PostgresConfig;
  readonly migrate: "auto" | "only" | "off";
  readonly dataDirectory: string;
  readonly artifacts: {
    readonly directory: string;
    readonly maxSizeBytes: number;
    /** 0: unused files stay. */
    readonly collectIntervalMs: number;
    readonly collectAgeMs: number;
  };
  readonly locks: LockConfig;
  readonly limits: LimitConfig;
  readonly tracing: { readonly enabled: boolean; readonly percent: number };
  readonly metrics: { readonly enabled: boolean; readonly token: string | undefined };
  /** Whom trusted proxies vouch for on the DDI routes; empty: header authentication is off. */
  readonly ddiAuthorities: DdiAuthorities;
  readonly operatorKey: string | undefined;
  readonly urlSigningKey: Buffer | undefined;
  /** They check URLs and sign none. */
  readonly urlAcceptedKeys: readonly Buffer[];
  readonly urlValidSeconds: number;
  readonly logLevel: "debug" | "info" | "warn" | "error" | "silent";
  readonly lastSeenFlushMs: number;
  readonly sweepIntervalMs: number;
  /** After how many days what is history is deleted; `undefined`: never. */
  readonly retention: { readonly eventDays: number | undefined; readonly auditDays: number | undefined };
  /** How long requests are still accepted after the first signal. */
  readonly shutdownDelayMs: number;
  readonly shutdownTimeoutMs: number;
  /** Variables that look like ours and are not: a misspelt name, most likely. */
  readonly unknownVariables: readonly UnknownVariable[];
}

/** PGlite on a folder, in this process. */
export interface EmbeddedDatabaseConfig {
  readonly kind: "embedded";
  readonly directory: string;
}

/** A PostgreSQL server. */
export interface PostgresConfig {
  readonly kind: "postgres";
  readonly url: string;
  readonly poolSize: number;
  readonly connectTimeoutMs: number;
  readonly statementTimeoutMs: number;
}

/** Where the locks of a check live and how they behave. */
export interface LockConfig {
  /** `undefined`: in this process's memory. */
  readonly redisUrl: string | undefined;
  readonly keyPrefix: string;
  readonly ttlMs: number;
  readonly maxAttempts: number;
  readonly retryIntervalMs: number;
  readonly operationTimeoutMs: number;
  readonly outage: "proceed" | "busy";
  readonly breakerMs: number;
}

/** What requests are refused for. */
export interface LimitConfig {
  /** By one device; 0: no limit. */
  readonly checksPerMinute: number;
  /** Different wrong credentials from one address; 0: no limit. */
  readonly failuresPerMinute: number;
  /** 0: never mind. */
  readonly loopDelayMs: number;
  /** 0: never mind. */
  readonly databaseDelayMs: number;
  readonly spreadSeconds: number;
}

/** What is wrong with the environment: one line for each variable, with its name and what it accepts. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`The configuration is not valid:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
    this.name = "ConfigError";
    this.problems = problems;
  }
}

/** The environment as it is: to be read here, and to be handed on to a service that is started as another process. */
export function processEnvironment(): NodeJS.ProcessEnv {
  return process.env;
}

/**
 * Reads the configuration. A variable that is empty counts as not set.
 *
 * @throws {ConfigError} naming every variable that is wrong, not only the first. Values of secrets are not repeated.
 */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const { values, problems } = readVariables(environment);
  if (values.DATABASE_URL !== undefined && values.OTA_URL_SIGNING_KEY === undefined) {
    problems.push(
      "OTA_URL_SIGNING_KEY is required with DATABASE_URL, the same for all processes (openssl rand -base64 32)",
    );
  }
  if (values.OTA_DDI_AUTHORITIES !== undefined && values.TRUST_PROXY === undefined) {
    problems.push("TRUST_PROXY is required with OTA_DDI_AUTHORITIES: nobody else's headers are believed");
  }
  if (problems.length > 0) throw new ConfigError(problems);

  const dataDirectory = resolve(values.OTA_DATA_DIR);
  return {
    http: {
      host: values.HOST,
      port: values.PORT,
      publicUrl: values.PUBLIC_URL,
      trustedProxies: values.TRUST_PROXY ?? [],
      bodyLimitBytes: values.OTA_BODY_LIMIT_BYTES,
      bodyTimeoutMs: values.OTA_BODY_TIMEOUT_MS,
      uploadTimeoutMs: values.OTA_UPLOAD_TIMEOUT_MS,
      keepAliveMs: values.OTA_KEEP_ALIVE_MS,
    },
    database:
      values.DATABASE_URL === undefined
        ? { kind: "embedded", directory: join(dataDirectory, "database") }
        : {
            kind: "postgres",
            url: values.DATABASE_URL,
            poolSize: values.OTA_DATABASE_POOL_SIZE,
            connectTimeoutMs: values.OTA_DATABASE_CONNECT_TIMEOUT_MS,
            statementTimeoutMs: values.OTA_DATABASE_STATEMENT_TIMEOUT_MS,
          },
    migrate: values.OTA_MIGRATE,
    dataDirectory,
    artifacts: {
      directory: resolve(values.OTA_ARTIFACT_DIR ?? join(dataDirectory, "artifacts")),
      maxSizeBytes: values.OTA_MAX_ARTIFACT_BYTES,
      collectIntervalMs: values.OTA_ARTIFACT_COLLECT_INTERVAL_MS,
      collectAgeMs: values.OTA_ARTIFACT_COLLECT_AGE_MS,
    },
    locks: {
      redisUrl: values.REDIS_URL,
      keyPrefix: values.LOCK_KEY_PREFIX,
      ttlMs: values.LOCK_TTL_MS,
      maxAttempts: values.LOCK_MAX_ATTEMPTS,
      retryIntervalMs: values.LOCK_RETRY_INTERVAL_MS,
      operationTimeoutMs: values.LOCK_OPERATION_TIMEOUT_MS,
      outage: values.OTA_LOCK_OUTAGE,
      breakerMs: values.OTA_LOCK_BREAKER_MS,
    },
    limits: {
      checksPerMinute: values.OTA_CHECK_LIMIT_PER_MINUTE,
      failuresPerMinute: values.OTA_FAILED_AUTH_LIMIT_PER_MINUTE,
      loopDelayMs: values.OTA_OVERLOAD_LOOP_DELAY_MS,
      databaseDelayMs: values.OTA_OVERLOAD_DATABASE_DELAY_MS,
      spreadSeconds: values.OTA_OVERLOAD_SPREAD_SECONDS,
    },
    tracing: { enabled: values.OTA_TRACING === "on", percent: values.OTA_TRACING_PERCENT },
    metrics: { enabled: values.OTA_METRICS === "on", token: values.OTA_METRICS_TOKEN },
    ddiAuthorities: values.OTA_DDI_AUTHORITIES ?? new Map(),
    operatorKey: values.OTA_OPERATOR_KEY,
    urlSigningKey: values.OTA_URL_SIGNING_KEY,
    urlAcceptedKeys: values.OTA_URL_ACCEPTED_KEYS ?? [],
    urlValidSeconds: values.OTA_URL_VALID_SECONDS,
    logLevel: values.LOG_LEVEL,
    lastSeenFlushMs: values.OTA_LAST_SEEN_FLUSH_MS,
    sweepIntervalMs: values.OTA_SWEEP_INTERVAL_MS,
    retention: {
      eventDays: values.OTA_EVENT_RETENTION_DAYS || undefined,
      auditDays: values.OTA_AUDIT_RETENTION_DAYS || undefined,
    },
    shutdownDelayMs: values.OTA_SHUTDOWN_DELAY_MS,
    shutdownTimeoutMs: values.OTA_SHUTDOWN_TIMEOUT_MS,
    unknownVariables: unknownVariables(environment),
  };
}

/** The values by name; `undefined` where a variable is not set and has no default. */
type Values = {
  -readonly [Name in VariableName]:
    | z.output<(typeof VARIABLES)[Name]["schema"]>
    | ((typeof VARIABLES)[Name] extends { readonly default: string } ? never : undefined);
};

function readVariables(environment: NodeJS.ProcessEnv): { values: Values; problems: string[] } {
  const values: Partial<Record<VariableName, unknown>> = {};
  const problems: string[] = [];
  for (const [name, variable] of Object.entries(VARIABLES) as [VariableName, Variable][]) {
    const text = environment[name] || variable.default;
    if (text === undefined) continue;
    const parsed = variable.schema.safeParse(text);
    if (parsed.success) values[name] = parsed.data;
    else
      problems.push(`${name} must be ${variable.accepts}${variable.secret ? "" : `, but is ${JSON.stringify(text)}`}`);
  }
  return { values: values as Values, problems };
}
