import { type Actor, recordAudit } from "../audit.ts";
import { findProduct } from "../catalog/products.ts";
import type { Database } from "../database.ts";
import { requireOneOf } from "../fields.ts";
import {
  type DeviceLine,
  EXISTING_DEVICES,
  type ExistingDevices,
  type RegisteredLine,
  readLines,
} from "./device-list.ts";
import { insertDevices } from "./insert-devices.ts";
import { LineProblems } from "./line-problems.ts";
import { refuseExisting, updateExisting } from "./update-existing.ts";

/**
 * Registers a list of devices, or none of them: the lines are read and checked to the end, and then written in one
 * transaction. Of parallel calls with one serial, one registers it, and the others find it there.
 *
 * With `update`, a device that is there takes what its line says; what the line leaves out stays, and so do attributes
 * that it does not name.
 *
 * @returns what has become of each line, in their order.
 * @throws OtaError `NOT_FOUND` where there is no such product; `LINES_INVALID` with `details.errors`, the first 1 000
 * {@link LineProblem}s, and `details.errorsTotal`.
 * @throws ServiceBusyError where a device of the list was deleted meanwhile; nothing was registered, send it again.
 */
export async function registerDevices(
  db: Database,
  input: {
    readonly actor: Actor;
    readonly product: string;
    readonly lines: AsyncIterable<DeviceLine> | Iterable<DeviceLine>;
    /** @default "refuse" */
    readonly existing?: ExistingDevices | undefined;
  },
): Promise<readonly RegisteredLine[]> {
  const { actor, existing = "refuse" } = input;
  requireOneOf("existing", existing, EXISTING_DEVICES);
  const { id: productId } = await findProduct(db, input.product);
  const problems = new LineProblems();
  const devices = await readLines(input.lines, problems);
  // All that is wrong with the list is told at once, and not first one kind and then the other.
  if (problems.areThere && existing === "refuse") await refuseExisting(db, { productId, devices, problems });
  problems.throwIfAny();

  return db.transaction(async (tx) => {
    const product = await findProduct(tx, input.product);
    const registered = await insertDevices(tx, { productId: product.id, devices });
    const others = devices.filter(({ serial }) => !registered.has(serial));
    const found = await updateExisting(tx, { actor, productId: product.id, devices: others, existing, problems });
    problems.throwIfAny();
    const lines = devices.map(({ line, serial, id, madeToken }): RegisteredLine => {
      const there = found.get(serial);
      return there === undefined
        ? { line, serial, id, outcome: "registered", token: madeToken }
        : { line, serial, ...there, token: undefined };
    });
    await recordAudit(tx, {
      ...{ actor, action: "device.register_bulk", subjectId: product.name },
      after: { product: product.name, existing, ...countsOf(lines) },
    });
    return lines;
  });
}

function countsOf(lines: readonly RegisteredLine[]) {
  const counts = { registered: 0, updated: 0, unchanged: 0, skipped: 0 };
  for (const { outcome } of lines) counts[outcome] += 1;
  return counts;
}
