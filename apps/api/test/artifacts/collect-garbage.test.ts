import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  createProduct,
  type Database,
  deleteFirmware,
  installationId,
  OtaError,
  registerFirmware,
  releaseFirmware,
} from "@ota/domain";
import { createTestDatabase, hasPostgres } from "@ota/testkit";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { holdsArtifact, type StoredArtifact } from "../../src/artifacts/artifact-store.ts";
import { collectGarbage } from "../../src/artifacts/collect-garbage.ts";
import { DiskArtifactStore } from "../../src/artifacts/disk-artifact-store.ts";
import { startPeriodicCollection } from "../../src/artifacts/periodic-collection.ts";
import { collectByCommand } from "../../src/collect-command.ts";
import { readConfig } from "../../src/config.ts";
import { type OpenDatabase, openDatabase } from "../../src/database.ts";

const actor = { kind: "system" } as const;
const DAY_MS = 86_400_000;

describe.skipIf(!hasPostgres)("collectGarbage", () => {
  let database: OpenDatabase;
  let db: Database;
  let url: string;
  let folder: string;
  let store: DiskArtifactStore;
  let made = 0;

  beforeAll(async () => {
    url = await createTestDatabase();
    database = await openDatabase(readConfig({ DATABASE_URL: url, OTA_URL_SIGNING_KEY: "0a".repeat(32) }));
    db = database.db;
    await createProduct(db, { actor, name: "hub" });
  });
  afterAll(() => database.close());
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "ota-collect-"));
    store = await DiskArtifactStore.open({ directory: folder, installationId: await installationId(db) });
    return () => rm(folder, { recursive: true, force: true });
  });

  const put = (bytes: Buffer = randomBytes(100)) => store.put(oneChunk(bytes), { maxSizeBytes: 1000 });
  const register = async (stored: StoredArtifact) => {
    made += 1;
    const artifact = { ...stored, fileName: "a.bin", contentType: "application/octet-stream" };
    const isStored = () => holdsArtifact(store, stored);
    return registerFirmware(db, { actor, product: "hub", version: `${made}.0.0`, artifact, isStored });
  };
  const age = (name: string, ms: number) => {
    const time = new Date(Date.now() - ms);
    return utimes(join(folder, name), time, time);
  };
  const files = async () => (await readdir(folder)).filter((name) => name !== "installation.json");

  test("deletes what is old and belongs to no firmware, and nothing else", async () => {
    const [draft, released, deleted, orphan, young] = [await put(), await put(), await put(), await put(), await put()];
    await register(draft);
    await releaseFirmware(db, { actor, firmwareId: (await register(released)).id });
    await deleteFirmware(db, { actor, firmwareId: (await register(deleted)).id });
    for (const { sha256 } of [draft, released, deleted, orphan]) await age(sha256, DAY_MS);
    const options = { db, store, minAgeMs: DAY_MS };
    const wouldDo = { files: 5, deleted: 2, freedBytes: 200, abandonedUploads: 0 };
    expect(await collectGarbage({ ...options, dryRun: true })).toEqual(wouldDo);
    expect(await files()).toHaveLength(5);
    expect(await collectGarbage(options)).toEqual(wouldDo);
    expect((await files()).sort()).toEqual([draft, released, young].map(({ sha256 }) => sha256).sort());
    expect(await collectGarbage(options)).toMatchObject({ deleted: 0 });
  });

  test("removes what killed uploads have left, and no upload in progress", async () => {
    const [abandoned, running] = [`${crypto.randomUUID()}.part`, `${crypto.randomUUID()}.part`];
    await writeFile(join(folder, abandoned), "half");
    await writeFile(join(folder, running), "half");
    await age(abandoned, 2 * 3_600_000);
    expect(await collectGarbage({ db, store, minAgeMs: DAY_MS })).toMatchObject({ abandonedUploads: 1 });
    expect(await files()).toEqual([running]);
  });

  test("a file that is put again is young again: the same content may be uploaded at any moment", async () => {
    const bytes = randomBytes(100);
    const { sha256 } = await put(bytes);
    await age(sha256, 2 * DAY_MS);
    await put(bytes);
    expect(await collectGarbage({ db, store, minAgeMs: DAY_MS })).toMatchObject({ deleted: 0 });
    expect(await files()).toEqual([sha256]);
  });

  test("whatever else lies in the folder is left alone", async () => {
    await writeFile(join(folder, "README.txt"), "not ours");
    await age("README.txt", 2 * DAY_MS);
    expect(await collectGarbage({ db, store, minAgeMs: 0 })).toEqual({
      ...{ files: 0, deleted: 0, freedBytes: 0, abandonedUploads: 0 },
    });
    expect(await files()).toEqual(["README.txt"]);
  });

  test("uploads that race it never lose a file: what was registered is there", async () => {
    const contents = Array.from({ length: 4 }, () => randomBytes(50));
    const rounds = { registered: 0, again: 0, lost: 0, deleted: 0 };
    const ending = new AbortController();
    // Without any least age: every file that is not registered is fair game, at any moment.
    const collector = async () => {
      while (!ending.signal.aborted) rounds.deleted += (await collectGarbage({ db, store, minAgeMs: 0 })).deleted;
    };
    const uploader = async (count: number) => {
      for (let i = 0; i < count; i += 1) {
        const stored = await put(contents[Math.floor(Math.random() * contents.length)]);
        try {
          const { id: firmwareId } = await register(stored);
          rounds.registered += 1;
          if (!(await holdsArtifact(store, stored))) rounds.lost += 1;
          await deleteFirmware(db, { actor, firmwareId });
        } catch (error) {
          if (!(error instanceof OtaError) || error.code !== "SERVICE_BUSY") throw error;
          rounds.again += 1;
        }
      }
    };
    const collectors = [collector(), collector()];
    await Promise.all(Array.from({ length: 6 }, () => uploader(Math.ceil(ROUNDS / 6))));
    ending.abort();
    await Promise.all(collectors);
    console.info("uploads that raced the collection:", JSON.stringify(rounds));
    expect(rounds.lost).toBe(0);
    expect(rounds.registered + rounds.again).toBeGreaterThanOrEqual(ROUNDS);
    // They have met: files were deleted, and uploads went through all the same.
    expect(rounds.deleted).toBeGreaterThan(5);
    expect(rounds.registered).toBeGreaterThan(ROUNDS / 10);
  }, 240_000);

  test("runs by itself, goes on after a failure, and stops", async () => {
    const failing = { ...storeLike(store), list: () => failOnce(store) };
    const { sha256 } = await put();
    const options = { db, store: failing, minAgeMs: 0, intervalMs: 20, logger: pino({ level: "silent" }) };
    const collection = startPeriodicCollection(options);
    await expect.poll(files, { timeout: 20_000 }).toEqual([]);
    await collection.stop();
    await put();
    await sleep(200);
    expect(await files()).toHaveLength(1);
    expect(sha256).not.toBe((await files())[0]);
  });

  test("is a command of the service, which only looks with --dry-run", async () => {
    await put();
    const config = readConfig({
      ...{ DATABASE_URL: url, OTA_URL_SIGNING_KEY: "0a".repeat(32), OTA_ARTIFACT_DIR: folder },
      OTA_ARTIFACT_COLLECT_AGE_MS: "0",
    });
    expect(await collectByCommand(config, { dryRun: true })).toMatchObject({ files: 1, deleted: 1 });
    expect(await files()).toHaveLength(1);
    expect(await collectByCommand(config, { dryRun: false })).toMatchObject({ files: 1, deleted: 1 });
    expect(await files()).toEqual([]);
  });
});

/** Enough: without the lock about three in a hundred lose their file. */
const ROUNDS = 500;

async function* oneChunk(bytes: Buffer) {
  // A copy: the store is done with a chunk before it asks for the next one, and may free it.
  yield Buffer.from(bytes);
}

let failures = 0;

async function* failOnce(store: DiskArtifactStore) {
  failures += 1;
  if (failures === 1) throw new Error("the disk is away for a moment");
  yield* store.list();
}

function storeLike(store: DiskArtifactStore) {
  return {
    put: store.put.bind(store),
    open: store.open.bind(store),
    stat: store.stat.bind(store),
    delete: store.delete.bind(store),
    probe: store.probe.bind(store),
    removeAbandonedUploads: store.removeAbandonedUploads.bind(store),
  };
}
