import { createHash } from "node:crypto";
import { ApiClient } from "./api-client.ts";
import type { Counted } from "./figures.ts";
import type { FirmwareImage } from "./firmware-image.ts";
import { check, type DemoDevice } from "./storm.ts";

/** What the devices say that they run before the upgrade. */
export const RUNNING_VERSION = "3.6.1";

/** Creates the product, uploads the image and releases it to everybody. Answers the firmware's id. */
export async function publish(
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
  await operator.call("POST", `/v1/firmware/${firmware["id"]}/release`, { startRollout: true });
  console.log(`Published ${image.fileName}, ${image.bytes.length.toLocaleString("en")} bytes: ${image.origin}.`);
  return String(firmware["id"]);
}

/** Registers devices one by one, as an operator would who brings them into service. */
export async function registerDevices(
  operator: ApiClient,
  fleet: { product: string; count: number },
): Promise<DemoDevice[]> {
  const devices: DemoDevice[] = [];
  for (let number = 1; number <= fleet.count; number += 1) {
    const serial = `hub-${String(number).padStart(4, "0")}`;
    const { device, token } = await operator.call("POST", `/v1/products/${fleet.product}/devices`, { serial });
    devices.push({ id: String((device as { id: string }).id), serial, token: String(token) });
  }
  console.log(`Registered ${devices.length} devices that run ${RUNNING_VERSION}.`);
  return devices;
}

/** Every upgrade record of the firmware, as the service lists them. */
export async function recordsOf(operator: ApiClient, firmwareId: string): Promise<Counted["records"]> {
  const upgrades = await operator.list(`/v1/upgrades?firmwareId=${firmwareId}`);
  return upgrades.map(({ device, attempt }) => {
    const { id, number } = attempt as { id: number; number: number };
    return { deviceId: (device as { id: string }).id, attemptId: id, attemptNumber: number };
  });
}

/**
 * One device goes all the way: it downloads, checks the hash, reports, restarts into the new version and asks again. Says
 * whether the service has recorded the success.
 */
export async function upgrade(
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

/**
 * Revokes the key that this run has worked with: it was made for the run alone. The only key of a database stays, since the
 * service keeps the last one.
 */
export async function revokeOwnKey(operator: ApiClient, product: string): Promise<void> {
  const [created] = await operator.list(`/v1/audit?subjectId=${product}`);
  const keyId = (created?.["actor"] as { keyId: string } | undefined)?.keyId;
  if (keyId !== undefined) await operator.send("POST", `/v1/operator-keys/${keyId}/revoke`);
}
