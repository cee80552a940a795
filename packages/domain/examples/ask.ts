import { createHash } from "node:crypto";
import { PGlite } from "@electric-sql/pglite";
import {
  createProduct,
  createUpdateChecks,
  hashToken,
  migrationsFolder,
  registerDevice,
  registerFirmware,
  releaseFirmware,
  schema,
} from "@ota/domain";
import { LockFactory, MemoryStore } from "@ota/lock-core";
import { drizzle } from "drizzle-orm/pglite";
import { migrate } from "drizzle-orm/pglite/migrator";

const client = await PGlite.create();
const db = drizzle(client, { schema });
await migrate(db, { migrationsFolder });

// What an operator does.
const actor = { kind: "system" } as const;
await createProduct(db, { actor, name: "thermostat" });
const { id: firmwareId } = await registerFirmware(db, {
  actor,
  product: "thermostat",
  version: "1.1.0",
  artifact: factsOf(Buffer.from("the new firmware")),
});
await releaseFirmware(db, { actor, firmwareId, startRollout: true });
const { token } = await registerDevice(db, { actor, product: "thermostat", serial: "kitchen" });

// What a device does: twenty times at once, and still there is one upgrade record.
const locks = new LockFactory(new MemoryStore(), { ttlMs: 10_000 });
const checks = createUpdateChecks({ db, locks, logger: console });
const question = { tokenHash: hashToken(token), reported: { version: "1.0.0" } };
const answers = await Promise.all(Array.from({ length: 20 }, () => checks.checkForUpdate(question)));
const upgrades = new Set(answers.map((answer) => answer.decision === "update" && answer.upgradeId));
console.log(`${answers.length} answers, ${upgrades.size} upgrade record`);

await checks.close();
await client.close();
if (upgrades.size !== 1) throw new Error("The one promise is broken.");

function factsOf(file: Buffer) {
  const hash = (algorithm: string) => createHash(algorithm).update(file).digest("hex");
  return {
    sizeBytes: file.length,
    ...{ sha256: hash("sha256"), sha1: hash("sha1"), md5: hash("md5") },
    ...{ fileName: "thermostat.bin", contentType: "application/octet-stream" },
  };
}
