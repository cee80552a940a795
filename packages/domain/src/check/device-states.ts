import { sql } from "drizzle-orm";
import type { Database } from "../database.ts";
import { type DeviceCredentials, holdsToken, isServedByGateway } from "../devices/credentials.ts";
import { requireSerial } from "../devices/device-fields.ts";
import { bytesList, givenList, textList } from "../id-list.ts";
import { type DeviceState, type PlacedState, stateStatement } from "./device-state.ts";
import { Gathering } from "./gathering.ts";

/** Reads the states of the devices that ask at the same time, as one statement; see {@link Gathering}. */
export class DeviceStates {
  readonly #byToken: Gathering<Uint8Array, DeviceState | undefined>;
  readonly #byGateway: Gathering<GatewayCredentials, DeviceState | undefined>;

  constructor(db: Database) {
    this.#byToken = new Gathering(async (given) => inOrder(given, await byToken(db, { hashes: bytesList(given) })));
    this.#byGateway = new Gathering(async (given) => {
      const hashes = bytesList(given.map(({ tokenHash }) => tokenHash));
      const serials = textList(given.map(({ serial }) => serial));
      return inOrder(given, await byGateway(db, { hashes, serials }));
    });
  }

  /**
   * The state of the device with these credentials; `undefined`: there is none.
   *
   * @throws OtaError INVALID_FIELD on a serial that no device can have.
   */
  async of({ tokenHash, serial, ownSerial }: DeviceCredentials): Promise<DeviceState | undefined> {
    const name = Buffer.from(tokenHash.buffer, tokenHash.byteOffset, tokenHash.byteLength).toString("latin1");
    if (serial !== undefined) {
      requireSerial("serial", serial);
      return this.#byGateway.get(name + serial, { tokenHash, serial });
    }
    const state = await this.#byToken.get(name, tokenHash);
    return ownSerial === undefined || ownSerial === state?.device.serial ? state : undefined;
  }
}

type GatewayCredentials = { readonly [K in "tokenHash" | "serial"]-?: NonNullable<DeviceCredentials[K]> };

const hashes = givenList("hashes", "bytea");
const hash = sql`given.hash`;
const serial = sql`given.serial`;
const place = sql`given.place`;

const byToken = stateStatement({
  place,
  from: sql`unnest(${hashes}) with ordinality given(hash, place) join devices on ${holdsToken(hash)}`,
});

const byGateway = stateStatement({
  place,
  from: sql`
    unnest(${hashes}, ${givenList("serials", "text")}) with ordinality given(hash, serial, place)
    join devices on ${isServedByGateway({ tokenHash: hash, serial })}
  `,
});

/** The rows come in any order, and without those whose credentials nobody has. */
function inOrder(given: readonly unknown[], rows: readonly PlacedState[]): (DeviceState | undefined)[] {
  const states = new Array<DeviceState | undefined>(given.length).fill(undefined);
  for (const { place, state } of rows) states[place - 1] = state;
  return states;
}
