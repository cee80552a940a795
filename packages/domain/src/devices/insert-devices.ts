import { sql } from "drizzle-orm";
import { DEFAULT_CHANNEL } from "../catalog/release.ts";
import type { Database } from "../database.ts";
import { devices } from "../schema/index.ts";
import type { PreparedDevice } from "./device-list.ts";

/** Rows of one statement: its one parameter stays below a megabyte for usual devices. */
export const ROWS_PER_STATEMENT = 1_000;

/**
 * Inserts the devices whose serials and tokens are free, and returns the serials of those. They are inserted in the order
 * of their serials, so that two lists with the same serials cannot wait for each other in a circle.
 */
export async function insertDevices(
  tx: Database,
  input: { readonly productId: bigint; readonly devices: readonly PreparedDevice[] },
): Promise<ReadonlySet<string>> {
  const inOrder = input.devices.toSorted((one, other) => (one.serial < other.serial ? -1 : 1));
  const inserted = new Set<string>();
  for (let start = 0; start < inOrder.length; start += ROWS_PER_STATEMENT) {
    const rows = inOrder.slice(start, start + ROWS_PER_STATEMENT).map(rowOf);
    const written = tx.$with("written", { serial: devices.serial }).as(sql`
      insert into devices
        (public_id, product_id, serial, token_hash, channel, hardware_revision, groups, attributes, time_zone,
         registered_by)
      select
        id, ${input.productId}::bigint, serial, decode(token_hash, 'hex'), channel, hardware_revision,
        array(select jsonb_array_elements_text(groups)), attributes, time_zone, 'bulk'
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as given(
        id uuid, serial text, token_hash text, channel text, hardware_revision text, groups jsonb, attributes jsonb,
        time_zone text
      )
      where not exists (select from devices where devices.previous_token_hash = decode(given.token_hash, 'hex'))
      order by serial collate "C"
      on conflict do nothing
      returning serial
    `);
    for (const { serial } of await tx.with(written).select({ serial: written.serial }).from(written)) {
      inserted.add(serial);
    }
  }
  return inserted;
}

function rowOf(device: PreparedDevice) {
  const { id, serial, tokenHash, channel, hardwareRevision, groups, attributes, timeZone } = device;
  return {
    ...{ id, serial, token_hash: tokenHash.toString("hex"), channel: channel ?? DEFAULT_CHANNEL },
    hardware_revision: hardwareRevision ?? null,
    groups: groups ?? [],
    attributes: attributes ?? {},
    time_zone: timeZone ?? null,
  };
}
