import { OtaError } from "../errors.ts";
import { newPublicId } from "../public-id.ts";
import { hashToken, newToken } from "../tokens.ts";
import { requireToken } from "./device-fields.ts";
import type { LineProblem, LineProblems } from "./line-problems.ts";
import { type NewDevice, requireNewDevice } from "./register-device.ts";

/** What becomes of a line whose serial the product has already: the whole list is refused, or the line is passed over, or the device is changed. */
export const EXISTING_DEVICES = ["refuse", "skip", "update"] as const;
export type ExistingDevices = (typeof EXISTING_DEVICES)[number];

/** The most devices that one call registers: their transaction is over within seconds. */
export const MAX_BULK_DEVICES = 10_000;

/** A device in a list. */
export interface ListedDevice extends NewDevice {
  /** The token that it has already, from another server: 22 to 256 printable ASCII characters. @default a new one is made */
  readonly token?: string | undefined;
}

/** One line of a list: a device, or what is wrong with the line. */
export type DeviceLine =
  | { readonly line: number; readonly device: ListedDevice }
  | { readonly line: number; readonly problems: readonly Omit<LineProblem, "line">[] };

/** What has become of one line. */
export interface RegisteredLine {
  readonly line: number;
  readonly serial: string;
  /** The device's public id. */
  readonly id: string;
  readonly outcome: "registered" | "updated" | "unchanged" | "skipped";
  /** The token that was made, which is shown this once; `undefined`: none was. */
  readonly token: string | undefined;
}

/** A line's device, ready to be written. */
export interface PreparedDevice extends ListedDevice {
  readonly line: number;
  /** Its public id, if it is registered. */
  readonly id: string;
  readonly tokenHash: Buffer;
  readonly madeToken: string | undefined;
}

/** Reads the lines to the end and checks each, and each against the others. */
export async function readLines(
  lines: AsyncIterable<DeviceLine> | Iterable<DeviceLine>,
  problems: LineProblems,
): Promise<readonly PreparedDevice[]> {
  const devices: PreparedDevice[] = [];
  // Those that are not valid count as well: a list of nothing else must come to an end too.
  let count = 0;
  const seen = { serial: new Map<string, number>(), token: new Map<string, number>() };
  for await (const read of lines) {
    const { line } = read;
    count += 1;
    if (count > MAX_BULK_DEVICES) {
      problems.add({ line, field: null, code: "TOO_MANY", message: `more than ${MAX_BULK_DEVICES} devices` });
      break;
    }
    if ("problems" in read) {
      for (const problem of read.problems) problems.add({ line, ...problem });
      continue;
    }
    const { device } = read;
    if (!isValid(device, { line, problems })) continue;
    for (const field of ["serial", "token"] as const) {
      const value = device[field];
      if (value === undefined) continue;
      const first = seen[field].get(value);
      if (first === undefined) seen[field].set(value, line);
      else problems.add({ line, field, code: "DUPLICATE", message: `the same as on line ${first}` });
    }
    const madeToken = device.token === undefined ? newToken() : undefined;
    const tokenHash = hashToken(device.token ?? madeToken ?? "");
    devices.push({ ...device, line, id: newPublicId(), tokenHash, madeToken });
  }
  return devices;
}

function isValid(
  device: ListedDevice,
  { line, problems }: { readonly line: number; readonly problems: LineProblems },
): boolean {
  try {
    requireNewDevice(device);
    if (device.token !== undefined) requireToken("token", device.token);
    return true;
  } catch (error) {
    if (!(error instanceof OtaError)) throw error;
    const field = error.details?.["field"];
    problems.add({
      line,
      field: typeof field === "string" ? field : null,
      code: "INVALID_FIELD",
      message: error.message,
    });
    return false;
  }
}
