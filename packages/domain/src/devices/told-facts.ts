import { eq } from "drizzle-orm";
import type { ReportedFacts } from "../check/reported.ts";
import type { Database } from "../database.ts";
import { devices, products } from "../schema/index.ts";
import { type DeviceCredentials, holdsCredentials, refusalOf } from "./credentials.ts";

/**
 * What a device's attributes say about its hardware and its version, by the names that its product gives to these: what it
 * would tell in a check, for protocols that know attributes alone.
 *
 * @throws OtaError `DEVICE_TOKEN_INVALID`, `GATEWAY_TOKEN_INVALID`, `GATEWAY_TOKEN_REFUSED`; `NOT_FOUND` for a serial that
 * no check through the gateway has registered yet.
 */
export async function toldFacts(
  db: Database,
  { attributes, ...credentials }: DeviceCredentials & { readonly attributes: Readonly<Record<string, unknown>> },
): Promise<Pick<ReportedFacts, "hardwareRevision" | "version">> {
  const [names] = await db
    .select({ hardware: products.hardwareAttribute, version: products.versionAttribute })
    .from(devices)
    .innerJoin(products, eq(products.id, devices.productId))
    .where(holdsCredentials(credentials));
  if (names === undefined) throw await refusalOf(db, credentials);
  const told = (name: string | null) => {
    const value = name !== null && Object.hasOwn(attributes, name) ? attributes[name] : undefined;
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  return { hardwareRevision: told(names.hardware), version: told(names.version) };
}
