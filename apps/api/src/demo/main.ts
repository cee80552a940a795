import { randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { processEnvironment } from "../config.ts";
import { ApiClient } from "./api-client.ts";
import { figuresOf, isRight, table } from "./figures.ts";
import { primeHubImage } from "./firmware-image.ts";
import { type DemoOptions, readOptions } from "./options.ts";
import { Progress } from "./progress.ts";
import { publish, RUNNING_VERSION, recordsOf, registerDevices, revokeOwnKey, upgrade } from "./scenario.ts";
import { startService } from "./service-process.ts";
import { storm } from "./storm.ts";

await main();

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  if ("print" in options) {
    console.log(options.print);
    process.exitCode = options.exitCode;
    return;
  }
  const interrupted = new AbortController();
  // Every request in flight listens to it.
  setMaxListeners(0, interrupted.signal);
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => interrupted.abort(new Error(name)));
  const folder = await mkdtemp(join(tmpdir(), "ota-demo-"));
  try {
    process.exitCode = (await demonstrate(options, { folder, signal: interrupted.signal })) ? 0 : 1;
  } catch (error) {
    console.error(
      interrupted.signal.aborted ? "\nInterrupted." : `\nThe demonstration failed: ${(error as Error).message}`,
    );
    process.exitCode = interrupted.signal.aborted ? 130 : 1;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Runs the whole demonstration. Says whether every figure is what the service guarantees. */
async function demonstrate(options: DemoOptions, run: { folder: string; signal: AbortSignal }): Promise<boolean> {
  const { signal } = run;
  const image = primeHubImage();
  const given = processEnvironment();
  const operatorKey = given["OTA_OPERATOR_KEY"] || randomBytes(32).toString("base64url");
  console.log(`Starting a service on ${describeStores(given)} …`);
  const service = await startService({
    signal,
    environment: {
      ...given,
      OTA_URL_SIGNING_KEY: given["OTA_URL_SIGNING_KEY"] || randomBytes(32).toString("hex"),
      OTA_OPERATOR_KEY: operatorKey,
      OTA_DATA_DIR: join(run.folder, "data"),
      OTA_ARTIFACT_DIR: join(run.folder, "artifacts"),
      LOG_LEVEL: "warn",
    },
  });
  try {
    const operator = new ApiClient({ url: service.url, token: operatorKey, signal });
    const product = `demo-${randomBytes(4).toString("hex")}`;
    const firmwareId = await publish(operator, { product, image });
    const devices = await registerDevices(operator, { product, count: options.devices });

    const progress = new Progress("Checks", options.devices * options.checks);
    const onAnswer = () => progress.step();
    const outcomes = await storm({
      ...{ url: service.url, devices, checks: options.checks },
      ...{ runningVersion: RUNNING_VERSION, signal, onAnswer },
    });
    progress.end();

    const figures = figuresOf({ outcomes, devices: devices.length, records: await recordsOf(operator, firmwareId) });
    const [device] = devices;
    if (device === undefined) throw new Error("There is no device.");
    const upgraded = await upgrade(device, { url: service.url, image, operator, signal });
    console.log(`\n${table(figures)}\n`);
    const right = figures.every(isRight) && upgraded;
    console.log(
      right ? "Every figure is what the service guarantees." : "NOT every figure is what the service guarantees.",
    );
    if (!right) console.log(`The service's last words:\n${service.lastWords()}`);
    if (given["DATABASE_URL"]) console.log(`Left in the database: the product ${product} with its devices.`);
    if (!given["OTA_OPERATOR_KEY"]) await revokeOwnKey(operator, product);
    return right;
  } finally {
    await service.stop();
  }
}

function describeStores(environment: NodeJS.ProcessEnv): string {
  const database = environment["DATABASE_URL"] ? "PostgreSQL" : "an embedded database in a temporary folder";
  return `${database}, ${environment["REDIS_URL"] ? "Redis" : "locks in memory"}`;
}
