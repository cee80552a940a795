import { ApiClient } from "./api-client.ts";

/** A device of the demonstration. */
export interface DemoDevice {
  readonly id: string;
  readonly serial: string;
  readonly token: string;
}

/** What one check was answered. */
export interface CheckOutcome {
  readonly device: DemoDevice;
  /** `update`, `none`, a problem's code, or `HTTP <status>`. */
  readonly kind: string;
  readonly attemptId: number | undefined;
  readonly downloadUrl: string | undefined;
  readonly durationMs: number;
}

/** How {@link storm} goes about it. */
export interface StormOptions {
  readonly url: string;
  readonly devices: readonly DemoDevice[];
  /** By each device. */
  readonly checks: number;
  /** What every device says that it runs. */
  readonly runningVersion: string;
  readonly signal: AbortSignal;
  readonly onAnswer: () => void;
}

/** As many requests as a machine with default limits has sockets for, with room to spare. */
const MAX_AT_ONCE = 1000;

/**
 * Lets the devices ask at the same moment, each of them `checks` times, and waits for all answers. A fleet that is too
 * large for one moment comes in waves; the checks of one device always come together.
 */
export async function storm(options: StormOptions): Promise<CheckOutcome[]> {
  const waveSize = Math.max(1, Math.floor(MAX_AT_ONCE / options.checks));
  const outcomes: CheckOutcome[] = [];
  for (let first = 0; first < options.devices.length; first += waveSize) {
    const wave = options.devices.slice(first, first + waveSize);
    outcomes.push(...(await Promise.all(wave.flatMap((device) => checksOf(device, options)))));
  }
  return outcomes;
}

function checksOf(device: DemoDevice, options: StormOptions): Promise<CheckOutcome>[] {
  const client = new ApiClient({ url: options.url, token: device.token, signal: options.signal });
  return Array.from({ length: options.checks }, () => check(client, { ...options, device }));
}

/** One check of one device. */
export async function check(
  client: ApiClient,
  options: { readonly device: DemoDevice; readonly runningVersion: string; readonly onAnswer?: () => void },
): Promise<CheckOutcome> {
  const startedAtMs = performance.now();
  const { status, body } = await client.send("POST", "/v1/check", { version: options.runningVersion });
  options.onAnswer?.();
  return {
    device: options.device,
    kind: String(body["decision"] ?? body["code"] ?? `HTTP ${status}`),
    attemptId: (body["attempt"] as { id?: number } | undefined)?.id,
    downloadUrl: (body["firmware"] as { url?: string } | undefined)?.url,
    durationMs: performance.now() - startedAtMs,
  };
}
