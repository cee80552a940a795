import { and, asc, eq, type SQL, sql } from "drizzle-orm";
import { type Actor, recordAudits } from "../audit.ts";
import type { Database } from "../database.ts";
import { OtaError, ServiceBusyError } from "../errors.ts";
import { devices } from "../schema/index.ts";
import type { ExistingDevices, PreparedDevice, RegisteredLine } from "./device-list.ts";
import { ROWS_PER_STATEMENT } from "./insert-devices.ts";
import type { LineProblems } from "./line-problems.ts";
import { changedKnown, type KnownOfDevice, knownOf } from "./update-device.ts";

/** What has become of a device that was there. */
type ExistingOutcome = Pick<RegisteredLine, "id" | "outcome">;

interface ExistingInput {
  readonly actor: Actor;
  readonly productId: bigint;
  readonly devices: readonly PreparedDevice[];
  readonly existing: ExistingDevices;
  /** What cannot be is added to it. */
  readonly problems: LineProblems;
}

/**
 * Looks after the lines that were not inserted, and returns what has become of those whose serial is there, by serial.
 * Devices that are to change are locked before, all in the order of their ids, as everywhere.
 */
export async function updateExisting(
  tx: Database,
  input: ExistingInput,
): Promise<ReadonlyMap<string, ExistingOutcome>> {
  if (input.existing === "update") await lockBySerials(tx, input);
  const outcomes = new Map<string, ExistingOutcome>();
  for (let start = 0; start < input.devices.length; start += ROWS_PER_STATEMENT) {
    const some = input.devices.slice(start, start + ROWS_PER_STATEMENT);
    for (const [serial, outcome] of await updateSome(tx, { ...input, devices: some })) outcomes.set(serial, outcome);
  }
  return outcomes;
}

/** Adds those to the problems that are there already, of a list that is not written for others. */
export async function refuseExisting(
  db: Database,
  input: Pick<ExistingInput, "productId" | "devices" | "problems">,
): Promise<void> {
  for (let start = 0; start < input.devices.length; start += ROWS_PER_STATEMENT) {
    const some = input.devices.slice(start, start + ROWS_PER_STATEMENT);
    const found = await findBySerials(db, { ...input, devices: some });
    for (const { line, serial } of some) {
      const device = found.get(serial);
      if (device !== undefined) input.problems.add({ line, code: "ALREADY_EXISTS", ...whyNot(device, "refuse") });
    }
  }
}

type DeviceColumns = typeof devices.$inferSelect;

async function updateSome(tx: Database, input: ExistingInput): Promise<readonly [string, ExistingOutcome][]> {
  const { existing, problems } = input;
  const found = await findBySerials(tx, input);
  const outcomes: [string, ExistingOutcome][] = [];
  const changes: DeviceChange[] = [];
  for (const given of input.devices) {
    const device = found.get(given.serial);
    // A token that was made here is nobody else's: then the serial was in the way.
    if (device === undefined && given.token === undefined) throw deletedMeanwhile();
    if (device === undefined || existing === "refuse" || (existing === "update" && given.token !== undefined)) {
      problems.add({ line: given.line, code: "ALREADY_EXISTS", ...whyNot(device, existing) });
      continue;
    }
    const change = existing === "skip" ? undefined : changeOf(device, { given, problems });
    if (change !== undefined) changes.push(change);
    const outcome = existing === "skip" ? "skipped" : change === undefined ? "unchanged" : "updated";
    outcomes.push([given.serial, { id: device.publicId, outcome }]);
  }
  await writeChanges(tx, changes);
  await recordAudits(
    tx,
    changes.map(({ device, before, after }) => ({
      ...{ actor: input.actor, action: "device.update", subjectId: device.publicId, before, after },
    })),
  );
  return outcomes;
}

/** In one statement, however many: between two of them others would get in with an order of their own. */
async function lockBySerials(tx: Database, input: ExistingInput): Promise<void> {
  await tx
    .select({ id: devices.id })
    .from(devices)
    .where(isInList(input))
    .orderBy(asc(devices.id))
    .for("no key update");
}

async function findBySerials(
  tx: Database,
  input: Pick<ExistingInput, "productId" | "devices">,
): Promise<ReadonlyMap<string, DeviceColumns>> {
  const rows = await tx.select().from(devices).where(isInList(input));
  return new Map(rows.map((row) => [row.serial, row]));
}

function isInList({ productId, devices: given }: Pick<ExistingInput, "productId" | "devices">): SQL | undefined {
  const serials = sql.param(
    given.map(({ serial }) => serial),
    devices.groups,
  );
  return and(eq(devices.productId, productId), sql`${devices.serial} = any(${serials}::text[])`);
}

function deletedMeanwhile(): ServiceBusyError {
  return new ServiceBusyError("A device of the list was deleted while the list was registered. Send the list again.", {
    retryAfterSeconds: 1,
  });
}

function whyNot(device: DeviceColumns | undefined, existing: ExistingDevices) {
  if (device === undefined) return { field: "token", message: "the token of another device" };
  return existing === "refuse"
    ? {
        field: "serial",
        message: "a device that the product has already: existing=skip leaves it, existing=update changes it",
      }
    : { field: "token", message: "the product has this device already: rotate its token instead" };
}

interface DeviceChange {
  readonly device: DeviceColumns;
  readonly before: KnownOfDevice;
  readonly after: KnownOfDevice;
}

/** `undefined`: the device is so already, or what its line says does not go with what it has. */
function changeOf(
  device: DeviceColumns,
  { given, problems }: { readonly given: PreparedDevice; readonly problems: LineProblems },
): DeviceChange | undefined {
  const { line, channel, hardwareRevision, groups, attributes, timeZone } = given;
  const before = knownOf(device);
  try {
    const after = changedKnown(before, { channel, hardwareRevision, groups, attributes, timeZone });
    return JSON.stringify(after) === JSON.stringify(before) ? undefined : { device, before, after };
  } catch (error) {
    if (!(error instanceof OtaError)) throw error;
    problems.add({ line, field: String(error.details?.["field"]), code: "INVALID_FIELD", message: error.message });
    return undefined;
  }
}

async function writeChanges(tx: Database, changes: readonly DeviceChange[]): Promise<void> {
  if (changes.length === 0) return;
  const rows = changes.map(({ device, after: { channel, hardwareRevision, groups, attributes, timeZone } }) => ({
    ...{ id: String(device.id), channel, groups, attributes },
    hardware_revision: hardwareRevision,
    time_zone: timeZone,
  }));
  const written = tx.$with("written", { id: devices.id }).as(sql`
    update devices set
      channel = given.channel, hardware_revision = given.hardware_revision, attributes = given.attributes,
      groups = array(select jsonb_array_elements_text(given.groups)), time_zone = given.time_zone
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as given(
      id bigint, channel text, hardware_revision text, groups jsonb, attributes jsonb, time_zone text
    )
    where devices.id = given.id
    returning devices.id
  `);
  await tx.with(written).select({ rows: sql`count(*)` }).from(written);
}
