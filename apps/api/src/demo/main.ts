import { createHash, randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { processEnvironment } from "../config.ts";
import { ApiClient } from "./api-client.ts";
import { type Counted, figuresOf, isRight, table } from "./figures.ts";
import { type FirmwareImage, primeHubImage } from "./firmware-image.ts";
import { type DemoOptions, readOptions } from "./options.ts";
import { Progress } from "./progress.ts";
import { startService } from "./service-process.ts";
import { check, type DemoDevice, storm } from "./storm.ts";

const RUNNING_VERSION = "3.6.1";

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
      OTA_URL_SIGNING_KEY: randomBytes(32).toString("hex"),
      ...given,
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
    if (given["DATABASE_URL"]) console.log(`Left in the database: the product ${product} with its devices.`);
    return right;
  } finally {
    await service.stop();
  }
}

function describeStores(environment: NodeJS.ProcessEnv): string {
  const database = environment["DATABASE_URL"] ? "PostgreSQL" : "an embedded database in a temporary folder";
  return `${database}, ${environment["REDIS_URL"] ? "Redis" : "locks in memory"}`;
}

async function publish(
  operator: ApiClient,
  { product, image }: { product: string; image: FirmwareImage },
): Promise<string> {
  await operator.call("POST", "/v1/products", { name: product });
  const query = new URLSearchParams({
    version: image.version,
    sha256: image.sha256,
    sizeBytes: String(image.bytes.length),
    fileName: image.fileName,
  });
  const firmware = await operator.call("POST", `/v1/products/${product}/firmware?${query}`, image.bytes);
  await operator.call("POST", `/v1/firmware/${firmware["id"]}/release`, {});
  console.log(`Published ${image.fileName}, ${image.bytes.length.toLocaleString("en")} bytes: ${image.origin}.`);
  return String(firmware["id"]);
}

async function registerDevices(operator: ApiClient, fleet: { product: string; count: number }): Promise<DemoDevice[]> {
  const devices: DemoDevice[] = [];
  for (let number = 1; number <= fleet.count; number += 1) {
    const serial = `hub-${String(number).padStart(4, "0")}`;
    const { device, token } = await operator.call("POST", `/v1/products/${fleet.product}/devices`, { serial });
    devices.push({ id: String((device as { id: string }).id), serial, token: String(token) });
  }
  console.log(`Registered ${devices.length} devices that run ${RUNNING_VERSION}.`);
  return devices;
}

async function recordsOf(operator: ApiClient, firmwareId: string): Promise<Counted["records"]> {
  const upgrades = await operator.list(`/v1/upgrades?firmwareId=${firmwareId}`);
  return upgrades.map(({ device, attempt }) => {
    const { id, number } = attempt as { id: number; number: number };
    return { deviceId: (device as { id: string }).id, attemptId: id, attemptNumber: number };
  });
}

/** One device goes all the way: it downloads, checks the hash, reports, restarts into the new version and asks again. */
async function upgrade(
  device: DemoDevice,
  run: { url: string; image: FirmwareImage; operator: ApiClient; signal: AbortSignal },
): Promise<boolean> {
  const client = new ApiClient({ url: run.url, token: device.token, signal: run.signal });
  const offer = await check(client, { device, runningVersion: RUNNING_VERSION });
  if (offer.attemptId === undefined || offer.downloadUrl === undefined)
    throw new Error(`${device.serial} was offered nothing.`);
  const report = (state: string) => client.call("POST", `/v1/attempts/${offer.attemptId}/reports`, { state });

  await report("downloading");
  const response = await fetch(offer.downloadUrl, { signal: run.signal });
  const sha256 = createHash("sha256")
    .update(await response.bytes())
    .digest("hex");
  if (sha256 !== run.image.sha256) throw new Error(`${device.serial} downloaded something else: SHA-256 ${sha256}.`);
  for (const state of ["downloaded", "installing", "installed"]) await report(state);
  await check(client, { device, runningVersion: run.image.version });

  const [record] = await run.operator.list(`/v1/upgrades?deviceId=${device.id}`);
  const state = (record?.["attempt"] as { state: string } | undefined)?.state ?? "not recorded";
  console.log(
    `${device.serial} downloaded it, found the SHA-256 right, installed it and now runs ${run.image.version}: ${state}.`,
  );
  return state === "succeeded";
}
