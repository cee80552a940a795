import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { type Config, ConfigError, readConfig } from "../src/config.ts";
import { configurationPage, helpText } from "../src/config-reference.ts";
import { VARIABLES } from "../src/config-variables.ts";

const SECRET = "hunter2-hunter2-hunter2";

describe("readConfig", () => {
  test("an empty environment is the embedded service on 127.0.0.1:3000", () => {
    expect(readConfig({})).toMatchObject({
      http: { host: "127.0.0.1", port: 3000, publicUrl: undefined, trustedProxies: [] },
      database: { kind: "embedded", directory: `${process.cwd()}/.data/database` },
      artifacts: { directory: `${process.cwd()}/.data/artifacts` },
      locks: {
        ...{ redisUrl: undefined, keyPrefix: "", ttlMs: 10_000, maxAttempts: 5, retryIntervalMs: 100 },
        ...{ operationTimeoutMs: 250, outage: "proceed", breakerMs: 1000 },
      },
      migrate: "auto",
      unknownVariables: [],
    } satisfies DeepPartial<Config>);
  });

  test("a variable that is empty counts as not set", () => {
    expect(readConfig({ PORT: "", DATABASE_URL: "", OTA_OPERATOR_KEY: "" })).toEqual(readConfig({}));
  });

  test("with DATABASE_URL it is the service on PostgreSQL, whose processes share a signing key", () => {
    const environment = { DATABASE_URL: "postgres://ota@db/ota", OTA_URL_SIGNING_KEY: "ab".repeat(32) };
    const config = readConfig(environment);
    expect(config.database).toEqual({
      ...{ kind: "postgres", url: "postgres://ota@db/ota", poolSize: 4 },
      ...{ connectTimeoutMs: 5000, statementTimeoutMs: 10_000 },
    });
    expect(config.urlSigningKey).toEqual(Buffer.alloc(32, 0xab));
    expect(() => readConfig({ DATABASE_URL: environment.DATABASE_URL })).toThrow(/OTA_URL_SIGNING_KEY is required/);
  });

  test.for([
    ["PORT", "65536"],
    ["PORT", "3000 "],
    ["PORT", "0x10"],
    ["HOST", "http://127.0.0.1"],
    ["PUBLIC_URL", "ota.example.com"],
    ["PUBLIC_URL", "https://ota.example.com/?a=b"],
    ["PUBLIC_URL", "https://user:password@ota.example.com"],
    ["TRUST_PROXY", "true"],
    ["TRUST_PROXY", "10.0.0.0/33"],
    ["DATABASE_URL", "mysql://ota@db/ota"],
    ["REDIS_URL", "localhost:6379"],
    ["LOCK_TTL_MS", "10s"],
    ["LOCK_MAX_ATTEMPTS", "0"],
    ["LOCK_KEY_PREFIX", "ota check"],
    ["OTA_LOCK_OUTAGE", "ignore"],
    ["OTA_MIGRATE", "yes"],
    ["OTA_URL_SIGNING_KEY", "c2hvcnQ="],
    ["OTA_URL_SIGNING_KEY", `${"ab".repeat(40)} `],
    ["OTA_URL_ACCEPTED_KEYS", `${"ab".repeat(32)},c2hvcnQ=`],
    ["OTA_URL_ACCEPTED_KEYS", `${"ab".repeat(32)},`],
    ["OTA_OPERATOR_KEY", "short"],
    ["LOG_LEVEL", "verbose"],
  ] as const)("%s=%s is refused, and the message names the variable and what it accepts", ([name, value]) => {
    expect(() => readConfig({ [name]: value })).toThrow(`${name} must be ${VARIABLES[name].accepts}`);
  });

  test("every wrong variable is named at once, and no secret is repeated", () => {
    const environment = {
      ...{ PORT: "none", LOG_LEVEL: "loud" },
      ...{
        DATABASE_URL: `mysql://ota:${SECRET}@db/ota`,
        REDIS_URL: `http://:${SECRET}@r`,
        OTA_OPERATOR_KEY: "hunter2",
      },
    };
    const error = thrownBy(() => readConfig(environment));
    expect(error).toBeInstanceOf(ConfigError);
    for (const name of Object.keys(environment)) expect(error.message).toContain(name);
    expect(error.message).not.toContain("hunter2");
  });

  test("a variable that begins as ours do is reported where it is none of them, with the one that it resembles", () => {
    expect(readConfig({ OTA_LOCK_OUTAGES: "busy", LOCK_TTL: "1", PATH: "/bin" }).unknownVariables).toEqual([
      { name: "OTA_LOCK_OUTAGES", meant: "OTA_LOCK_OUTAGE" },
      { name: "LOCK_TTL", meant: undefined },
    ]);
  });

  test.for([
    ["REDIS_URLL", "REDIS_URL"],
    ["REDIIS_URL", "REDIS_URL"],
    ["REDIS_UR", "REDIS_URL"],
    ["EDIS_URL", "REDIS_URL"],
    ["REDIS_URI", "REDIS_URL"],
    ["DATABSE_URL", "DATABASE_URL"],
    ["database_url", "DATABASE_URL"],
    ["TRUST_PROXI", "TRUST_PROXY"],
    ["PUBLIC_ULR", "PUBLIC_URL"],
    ["OAT_METRICS", "OTA_METRICS"],
  ] as const)("%s is reported as %s, unless that is set as well or it is empty", ([name, meant]) => {
    const reported = (environment: NodeJS.ProcessEnv) => readConfig(environment).unknownVariables;
    expect(reported({ [name]: "x" })).toEqual([{ name, meant }]);
    expect(reported({ [name]: "" })).toEqual([]);
    const right = { REDIS_URL: "redis://r", DATABASE_URL: "postgres://db/ota", TRUST_PROXY: "loopback" };
    const set = { ...right, PUBLIC_URL: "http://ota", OTA_METRICS: "on", OTA_URL_SIGNING_KEY: "ab".repeat(32) };
    expect(reported({ ...set, [name]: "x" })).toEqual([]);
  });

  test("what is anybody else's is not reported", () => {
    const others = [
      ...["PORTS", "POST", "SPORT", "HOSTS", "GHOST", "port", "host", "PATH", "URL", "NODE_ENV", "PGDATABASE"],
      ...["REDIS_TTL", "REDIS_SSL", "REDIS_HOST", "REDIS_TLS_URL", "REDIS_PORT_6379_TCP", "TEST_DATABASE_URL"],
      ...["DATABASE_DSN", "PUBLIC_API", "APP_LOG_LEVEL", "TRUSTED_PROXIES", "BLOCK_SIZE", "OTEL_SERVICE_NAME"],
    ];
    expect(readConfig(Object.fromEntries(others.map((name) => [name, "x"]))).unknownVariables).toEqual([]);
  });

  test("hexadecimal and base64 give the same signing key, and PUBLIC_URL loses its trailing slash", () => {
    const key = Buffer.from("an exact key of 32 bytes, exactly");
    const [hex, base64] = [key.toString("hex"), key.toString("base64")].map((text) =>
      readConfig({ OTA_URL_SIGNING_KEY: text, PUBLIC_URL: "https://ota.example.com/api/" }),
    );
    expect(hex?.urlSigningKey).toEqual(key);
    expect(base64?.urlSigningKey).toEqual(key);
    expect(hex?.http.publicUrl).toBe("https://ota.example.com/api");
  });

  test("the accepted keys are none, or those between the commas", () => {
    const keys = [Buffer.alloc(32, 1), Buffer.alloc(48, 2)];
    const OTA_URL_ACCEPTED_KEYS = `${keys[0]?.toString("hex")}, ${keys[1]?.toString("base64")}`;
    expect(readConfig({ OTA_URL_ACCEPTED_KEYS }).urlAcceptedKeys).toEqual(keys);
    expect(readConfig({}).urlAcceptedKeys).toEqual([]);
  });
});

describe("the reference of the configuration", () => {
  test("docs/configuration.md is what the source says; write it anew with: pnpm --filter @ota/api configuration-page", async () => {
    const page = new URL("../../../docs/configuration.md", import.meta.url);
    expect(await readFile(page, "utf8")).toBe(configurationPage());
  });

  test("every variable has a default, in words or as a value that is accepted", () => {
    for (const [name, variable] of Object.entries(VARIABLES)) {
      const {
        schema,
        default: text,
        defaultText,
      } = variable as { default?: string; defaultText?: string } & typeof variable;
      expect(text ?? defaultText, name).toBeDefined();
      if (text !== undefined) expect(schema.safeParse(text).success, name).toBe(true);
    }
  });

  test("the command line's help names every variable", () => {
    for (const name of Object.keys(VARIABLES)) expect(helpText()).toContain(name);
  });
});

type DeepPartial<T> = T extends object ? { readonly [Key in keyof T]?: DeepPartial<T[Key]> } : T;

function thrownBy(action: () => unknown): Error {
  try {
    action();
  } catch (error) {
    return error as Error;
  }
  throw new Error("nothing was thrown");
}
