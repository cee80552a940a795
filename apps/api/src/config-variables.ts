import { z } from "zod";
import { decodeKey, decodeKeys, integer, oneOf, path, variable } from "./config-variable.ts";
import { readAuthorities } from "./ddi/ddi-authorities.ts";

/** The longest delay of a timer in Node; beyond it a timer fires at once. */
const MAX_TIMER_MS = 2_147_483_647;

/** All environment variables of the service, in the order of the reference. */
export const VARIABLES = {
  HOST: variable({
    group: "HTTP",
    about: "The address to listen on. `0.0.0.0` or `::` for all; then set `PUBLIC_URL` as well.",
    accepts: "a host name or an IP address",
    schema: z.string().regex(/^[A-Za-z0-9._:-]+$/),
    default: "127.0.0.1",
  }),
  PORT: variable({
    group: "HTTP",
    about:
      "The TCP port to listen on; `0` takes a free one. One that is in use ends the start before a database is made or waited for (`PORT_IN_USE`).",
    ...integer({ min: 0, max: 65_535 }),
    default: "3000",
  }),
  PUBLIC_URL: variable({
    group: "HTTP",
    about:
      "Where devices reach the service: the base of every absolute link. Set it wherever a balancer or a name stands in " +
      "front.",
    accepts: "an http:// or https:// URL without query and fragment",
    schema: z
      .url({ protocol: /^https?$/ })
      .refine((text) => !/[?#]/.test(text) && URL.parse(text)?.username === "")
      .transform((text) => text.replace(/\/+$/, "")),
    defaultText:
      "what a proxy of `TRUST_PROXY` says, else `http://HOST:PORT`, with `127.0.0.1` where the service listens on all " +
      "addresses",
  }),
  TRUST_PROXY: variable({
    group: "HTTP",
    about:
      "The proxies whose forwarding headers are believed: `X-Forwarded-For` when the log names a client, and without " +
      "`PUBLIC_URL` also `X-Forwarded-Proto`, `-Host`, `-Port` and `-Prefix` for absolute links. They must overwrite what " +
      "clients send. Without it the log names the peer.",
    accepts:
      "addresses or subnets separated by commas, such as 10.0.0.0/8,127.0.0.1, or one of the names " +
      "loopback, linklocal, uniquelocal",
    schema: z
      .string()
      .transform((text) => text.split(",").map((part) => part.trim()))
      .pipe(
        z
          .array(
            z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6(), z.enum(["loopback", "linklocal", "uniquelocal"])]),
          )
          .min(1),
      ),
    defaultText: "no proxy is trusted",
  }),
  OTA_BODY_LIMIT_BYTES: variable({
    group: "HTTP",
    about:
      "The largest JSON body that is read. A device's report may have 2 MiB all the same: no last word is refused for its length.",
    ...integer({ min: 1024, max: 16 * 1024 * 1024 }),
    default: "65536",
  }),
  OTA_BODY_TIMEOUT_MS: variable({
    group: "HTTP",
    about: "How long a JSON body may take to arrive.",
    ...integer({ min: 100, max: MAX_TIMER_MS }),
    default: "10000",
  }),
  OTA_UPLOAD_TIMEOUT_MS: variable({
    group: "HTTP",
    about: "How long a whole request may take to arrive, a firmware upload included. `0`: no limit.",
    ...integer({ min: 0, max: MAX_TIMER_MS }),
    default: "3600000",
  }),
  OTA_KEEP_ALIVE_MS: variable({
    group: "HTTP",
    about:
      "How long an idle connection stays open for the next request. Longer than the idle timeout of a balancer in front, " +
      "or it sends requests into connections that are just being closed.",
    ...integer({ min: 0, max: MAX_TIMER_MS }),
    default: "65000",
  }),

  DATABASE_URL: variable({
    group: "Storage",
    about:
      "The PostgreSQL database (15 or later), directly or through a pooler in session mode. Without it the service keeps an " +
      "embedded database in `OTA_DATA_DIR`, which is for one process and does not survive a power cut for certain.",
    accepts: "a postgres:// or postgresql:// URL",
    schema: z.string().refine((text) => /^postgres(ql)?:$/.test(URL.parse(text)?.protocol ?? "")),
    defaultText: "an embedded database",
    secret: true,
  }),
  OTA_DATABASE_POOL_SIZE: variable({
    group: "Storage",
    about: "Connections to PostgreSQL per process. A small pool is faster than a large one.",
    ...integer({ min: 1, max: 100 }),
    default: "4",
  }),
  OTA_DATABASE_CONNECT_TIMEOUT_MS: variable({
    group: "Storage",
    about: "How long opening a connection to PostgreSQL may take.",
    ...integer({ min: 100, max: MAX_TIMER_MS }),
    default: "5000",
  }),
  OTA_DATABASE_STATEMENT_TIMEOUT_MS: variable({
    group: "Storage",
    about:
      "How long one statement may run before PostgreSQL cancels it. A server that does not even do that is given up after " +
      "half as long again, and its connections are closed.",
    ...integer({ min: 100, max: 600_000 }),
    default: "10000",
  }),
  OTA_MIGRATE: variable({
    group: "Storage",
    about:
      "`auto`: bring the schema up to date at the start. `only`: do that and end. `off`: leave it alone, and refuse to " +
      "start where it is older than this version needs. Any number of processes may start at once.",
    ...oneOf(["auto", "only", "off"]),
    default: "auto",
  }),
  OTA_DATA_DIR: variable({
    group: "Storage",
    about: "The folder of the embedded database and of the keys made at the first start. One process at a time.",
    ...path(),
    default: ".data",
  }),
  OTA_ARTIFACT_DIR: variable({
    group: "Storage",
    about: "The folder of the firmware files. Processes on one database share it.",
    ...path(),
    defaultText: "`artifacts` within `OTA_DATA_DIR`",
  }),
  OTA_MAX_ARTIFACT_BYTES: variable({
    group: "Storage",
    about: "The largest firmware file that is accepted.",
    ...integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    default: "4294967296",
  }),
  OTA_ARTIFACT_COLLECT_INTERVAL_MS: variable({
    group: "Storage",
    about:
      "How often the service looks for files that belong to no firmware, such as those of deleted drafts, and deletes " +
      "them. `0`: never; then run `main.js artifacts collect` now and then.",
    ...integer({ min: 0, max: MAX_TIMER_MS }),
    default: "21600000",
  }),
  OTA_ARTIFACT_COLLECT_AGE_MS: variable({
    group: "Storage",
    about:
      "How long such a file has been there at the least before it is deleted. It must be longer than the clocks of the " +
      "service and of the folder's server are apart.",
    ...integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
    default: "86400000",
  }),

  REDIS_URL: variable({
    group: "Locks",
    about:
      "The Redis that holds the locks of a check. Without it they are held in memory, which damps contention within one " +
      "process only; the database's constraints keep records single either way.",
    accepts: "a redis:// or rediss:// URL",
    schema: z.string().refine((text) => /^rediss?:$/.test(URL.parse(text)?.protocol ?? "")),
    defaultText: "locks in memory",
    secret: true,
  }),
  LOCK_KEY_PREFIX: variable({
    group: "Locks",
    about:
      "Put in front of the lock keys (`ota:check:<device>:<firmware>`), so that several installations can share a Redis.",
    accepts: "at most 100 printable characters",
    schema: z.string().regex(/^[!-~]{0,100}$/),
    default: "",
  }),
  LOCK_TTL_MS: variable({
    group: "Locks",
    about: "How long a lock outlives a process that died with it.",
    ...integer({ min: 100, max: 3_600_000 }),
    default: "10000",
  }),
  LOCK_MAX_ATTEMPTS: variable({
    group: "Locks",
    about: "How many times a check tries to get its lock before it answers `SERVICE_BUSY`.",
    ...integer({ min: 1, max: 1000 }),
    default: "5",
  }),
  LOCK_RETRY_INTERVAL_MS: variable({
    group: "Locks",
    about: "The longest pause between two tries.",
    ...integer({ min: 1, max: 60_000 }),
    default: "100",
  }),
  LOCK_OPERATION_TIMEOUT_MS: variable({
    group: "Locks",
    about: "How long one operation of the lock store may take.",
    ...integer({ min: 10, max: 60_000 }),
    default: "250",
  }),
  OTA_LOCK_OUTAGE: variable({
    group: "Locks",
    about:
      "What a check does while the lock store is away. `proceed`: goes on without the lock; the database keeps records " +
      "single. `busy`: answers `SERVICE_BUSY`.",
    ...oneOf(["proceed", "busy"]),
    default: "proceed",
  }),
  OTA_LOCK_BREAKER_MS: variable({
    group: "Locks",
    about: "How long the lock store is left alone after a fault.",
    ...integer({ min: 0, max: 60_000 }),
    default: "1000",
  }),

  OTA_OPERATOR_KEY: variable({
    group: "Security",
    about:
      "An operator key that is made known at the start: the way to the first one with `DATABASE_URL`. The command " +
      "`operator-key create` is the other.",
    accepts: "22 to 256 printable ASCII characters without spaces, drawn at random (openssl rand -base64 32)",
    schema: z.string().regex(/^[!-~]{22,256}$/),
    defaultText: "embedded: made at the first start, and kept in `OTA_DATA_DIR`",
    secret: true,
  }),
  OTA_URL_SIGNING_KEY: variable({
    group: "Security",
    about: "Signs the download URLs of firmware. All processes of an installation need the same.",
    accepts: "at least 32 random bytes in base64 or hexadecimal (openssl rand -base64 32)",
    schema: z.string().transform(decodeKey),
    defaultText: "embedded: made at the first start, and kept in `OTA_DATA_DIR`; required with `DATABASE_URL`",
    secret: true,
  }),
  OTA_URL_ACCEPTED_KEYS: variable({
    group: "Security",
    about:
      "Other keys whose download URLs are accepted, while none is signed by them: the next key before it becomes " +
      "`OTA_URL_SIGNING_KEY`, and the previous one for as long as its URLs live.",
    accepts: "keys as OTA_URL_SIGNING_KEY, separated by commas",
    schema: z.string().transform(decodeKeys),
    defaultText: "URLs of `OTA_URL_SIGNING_KEY` alone are accepted",
    secret: true,
  }),
  OTA_DDI_AUTHORITIES: variable({
    group: "Security",
    about:
      "Header authentication of DDI (hawkBit) devices: whoever a proxy of `TRUST_PROXY` vouches for by `X-Controller-Id` and " +
      "one of these authorities in `X-Authority` or `X-Authority-0`, `-1`, … is served as through the gateway token that " +
      "stands beside it. The proxy must check the device's certificate, and overwrite these headers.",
    accepts: "authority=gateway-token pairs separated by commas, with TRUST_PROXY set as well",
    schema: z.string().transform(readAuthorities),
    defaultText: "header authentication is off",
    secret: true,
  }),
  OTA_URL_VALID_SECONDS: variable({
    group: "Security",
    about: "How long a signed download URL works at the least.",
    ...integer({ min: 60, max: 604_800 }),
    default: "3600",
  }),

  OTA_CHECK_LIMIT_PER_MINUTE: variable({
    group: "Limits",
    about:
      "How many checks of one device are answered in a minute; more are answered `RATE_LIMITED` (429). A device that keeps " +
      "to `pollAfterSeconds` never comes near. With `REDIS_URL` the processes count together, though up to a tenth of the " +
      "limit each process keeps to itself. Reports and downloads are not limited. `0`: no limit.",
    ...integer({ min: 0, max: 1_000_000 }),
    default: "3000",
  }),
  OTA_FAILED_AUTH_LIMIT_PER_MINUTE: variable({
    group: "Limits",
    about:
      "With how many different wrong credentials an address (of IPv6 a /64) may come in a minute; then its checks and " +
      "operators' requests are answered `RATE_LIMITED` (429) until the minute is over. The address of a trusted proxy " +
      "itself is not limited. Reports and downloads are not refused. `0`: no limit.",
    ...integer({ min: 0, max: 1_000_000 }),
    default: "100",
  }),
  OTA_OVERLOAD_LOOP_DELAY_MS: variable({
    group: "Limits",
    about:
      "How late the process may be with its work. Once it has been later for a second, checks are answered " +
      "`SERVICE_BUSY` (503) before anything is looked up, until it has been below half of this for a second. Reports, " +
      "downloads and operators' requests are served. `0`: never.",
    ...integer({ min: 0, max: 60_000 }),
    default: "500",
  }),
  OTA_OVERLOAD_DATABASE_DELAY_MS: variable({
    group: "Limits",
    about:
      "The same for PostgreSQL: how long even the fastest statement may take, the wait for a connection included. " +
      "`0`: never.",
    ...integer({ min: 0, max: 600_000 }),
    default: "2000",
  }),
  OTA_OVERLOAD_SPREAD_SECONDS: variable({
    group: "Limits",
    about:
      "Devices that were turned away come back within this time, each at a moment of its own (`Retry-After`). The poll " +
      "interval of the fleet is a good choice.",
    ...integer({ min: 15, max: 86_399 }),
    default: "300",
  }),

  LOG_LEVEL: variable({
    group: "Operation",
    about: "The least severe level that is logged. At `info` each request is a line.",
    ...oneOf(["debug", "info", "warn", "error", "silent"]),
    default: "info",
  }),
  OTA_METRICS: variable({
    group: "Operation",
    about:
      "Whether the process keeps figures about itself and shows them at `/metrics`, in Prometheus' text format. Each " +
      "process has its own.",
    ...oneOf(["on", "off"]),
    default: "on",
  }),
  OTA_METRICS_TOKEN: variable({
    group: "Operation",
    about: "What a reader of `/metrics` must send as Bearer token. Set it where devices can reach that address.",
    accepts: "16 to 256 printable ASCII characters without spaces",
    schema: z.string().regex(/^[!-~]{16,256}$/),
    defaultText: "everybody may read",
    secret: true,
  }),
  OTA_TRACING: variable({
    group: "Operation",
    about:
      "Whether requests, checks, waits for locks and database statements are traced with OpenTelemetry, and sent to a " +
      "collector by OTLP over HTTP. Where to is said by the standard variables, such as `OTEL_EXPORTER_OTLP_ENDPOINT` and " +
      "`OTEL_SERVICE_NAME`. While it is off nothing of it is loaded.",
    ...oneOf(["on", "off"]),
    default: "off",
  }),
  OTA_TRACING_PERCENT: variable({
    group: "Operation",
    about: "How many of a hundred requests are traced, where their sender has not decided it by a `traceparent`.",
    ...integer({ min: 0, max: 100 }),
    default: "100",
  }),
  OTA_LAST_SEEN_FLUSH_MS: variable({
    group: "Operation",
    about: "How often the devices' last-seen times are written. A crash loses at most so much of them.",
    ...integer({ min: 100, max: 600_000 }),
    default: "10000",
  }),
  OTA_SWEEP_INTERVAL_MS: variable({
    group: "Operation",
    about:
      "How often silent attempts are looked for, to end those past their deadline and free their places. Of all processes " +
      "one does it.",
    ...integer({ min: 100, max: 3_600_000 }),
    default: "10000",
  }),
  OTA_EVENT_RETENTION_DAYS: variable({
    group: "Operation",
    about:
      "For how many days the reports on an attempt are kept after it has ended. The attempt itself stays, with how it ended. " +
      "`0`: for ever.",
    ...integer({ min: 0, max: 36_500 }),
    default: "365",
  }),
  OTA_AUDIT_RETENTION_DAYS: variable({
    group: "Operation",
    about: "For how many days entries of the audit log are kept. `0`: for ever.",
    ...integer({ min: 0, max: 36_500 }),
    default: "0",
  }),
  OTA_SHUTDOWN_DELAY_MS: variable({
    group: "Operation",
    about:
      "For how long after SIGTERM or SIGINT requests are still accepted, while `/readyz` answers 503 at once: the time that a " +
      "balancer needs to see it. `0` where something else takes the process out of the balancer before it gets the signal.",
    ...integer({ min: 0, max: 600_000 }),
    default: "0",
  }),
  OTA_SHUTDOWN_TIMEOUT_MS: variable({
    group: "Operation",
    about:
      "How long requests in flight may then take to finish. A second signal ends the process at once, whatever it is doing.",
    ...integer({ min: 0, max: 600_000 }),
    default: "20000",
  }),
} as const;

/** The name of one of the service's environment variables. */
export type VariableName = keyof typeof VARIABLES;
