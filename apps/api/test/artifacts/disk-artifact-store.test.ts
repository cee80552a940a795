import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { holdsArtifact } from "../../src/artifacts/artifact-store.ts";
import { DiskArtifactStore } from "../../src/artifacts/disk-artifact-store.ts";

const exec = promisify(execFile);
const installationId = "0197b1c0-0000-7000-8000-000000000001";
const otherInstallationId = "0197b1c0-0000-7000-8000-000000000002";
const MiB = 1024 * 1024;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "ota-artifacts-"));
});
afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

const openStore = (options: { in?: string; abandonedAfterMs?: number } = {}) =>
  DiskArtifactStore.open({
    directory: options.in ?? directory,
    installationId,
    ...(options.abandonedAfterMs === undefined ? {} : { abandonedAfterMs: options.abandonedAfterMs }),
  });
const hex = (algorithm: string, bytes: Uint8Array) => createHash(algorithm).update(bytes).digest("hex");
const filesIn = async (folder: string) => (await readdir(folder)).filter((name) => name !== "installation.json");

describe("DiskArtifactStore.put", () => {
  test("answers size and all three hashes, and the bytes come back as they were", async () => {
    const store = await openStore();
    const bytes = randomBytes(3 * MiB + 17);
    const stored = await store.put(Readable.from(chunks(bytes)), { maxSizeBytes: 4 * MiB });
    expect(stored).toEqual({
      sizeBytes: bytes.length,
      sha256: hex("sha256", bytes),
      sha1: hex("sha1", bytes),
      md5: hex("md5", bytes),
    });
    expect((await buffer(await store.open(stored))).equals(bytes)).toBe(true);
    expect(await filesIn(directory)).toEqual([stored.sha256]);
  });

  test("the same bytes put twenty times at once are stored once and stay readable", async () => {
    const store = await openStore();
    const bytes = randomBytes(100_000);
    const puts = Array.from({ length: 20 }, () => store.put(Readable.from(chunks(bytes)), { maxSizeBytes: MiB }));
    const [first] = await Promise.all(puts);
    expect(await filesIn(directory)).toEqual([first?.sha256]);
    expect(await holdsArtifact(store, { sha256: hex("sha256", bytes), sizeBytes: bytes.length })).toBe(true);
  });

  test.each([
    ["bytes with another SHA-256", { expected: { sha256: "0".repeat(64) } }, "ARTIFACT_SHA256_MISMATCH"],
    ["fewer bytes than announced", { expected: { sizeBytes: 1001 } }, "ARTIFACT_SIZE_MISMATCH"],
    ["more bytes than announced", { expected: { sizeBytes: 999 } }, "ARTIFACT_SIZE_MISMATCH"],
    ["more bytes than the limit", { maxSizeBytes: 999 }, "ARTIFACT_TOO_LARGE"],
    [
      "more bytes than the limit, also when so announced",
      { maxSizeBytes: 999, expected: { sizeBytes: 1000 } },
      "ARTIFACT_TOO_LARGE",
    ],
  ])("refuses %s and leaves nothing behind", async (_what, options, code) => {
    const store = await openStore();
    const upload = store.put(Readable.from(chunks(randomBytes(1000))), { maxSizeBytes: MiB, ...options });
    await expect(upload).rejects.toMatchObject({ name: "ArtifactError", code });
    expect(await filesIn(directory)).toEqual([]);
  });

  test("refuses an upload without a byte", async () => {
    const store = await openStore();
    await expect(store.put(Readable.from([]), { maxSizeBytes: MiB })).rejects.toMatchObject({ code: "ARTIFACT_EMPTY" });
    expect(await filesIn(directory)).toEqual([]);
  });

  test("accepts exactly the limit", async () => {
    const store = await openStore();
    const bytes = randomBytes(1000);
    await expect(store.put(Readable.from([bytes]), { maxSizeBytes: 1000 })).resolves.toMatchObject({ sizeBytes: 1000 });
  });

  test("a source that breaks off leaves nothing behind", async () => {
    const store = await openStore();
    const source = new PassThrough();
    const upload = store.put(source, { maxSizeBytes: MiB });
    source.write(randomBytes(100_000));
    await untilSomethingIsWritten();
    source.destroy(new Error("connection reset"));
    await expect(upload).rejects.toMatchObject({ code: "UPLOAD_INCOMPLETE" });
    expect(await filesIn(directory)).toEqual([]);
  });

  test("nothing is visible under the final name before the last byte is there", async () => {
    const store = await openStore();
    const source = new PassThrough();
    const bytes = randomBytes(50_000);
    const key = { sha256: hex("sha256", bytes), sizeBytes: bytes.length };
    const upload = store.put(source, { maxSizeBytes: MiB });
    source.write(bytes);
    await untilSomethingIsWritten();
    expect(await holdsArtifact(store, key)).toBe(false);
    source.end();
    await upload;
    expect(await holdsArtifact(store, key)).toBe(true);
  });

  test("reads no further than the disk has written: the sender is slowed down, memory is not filled", async () => {
    const store = await openStore();
    let produced = 0;
    const source = new Readable({
      highWaterMark: 64 * 1024,
      read() {
        produced += 64 * 1024;
        this.push(produced > 200 * MiB ? null : Buffer.alloc(64 * 1024));
      },
    });
    // A store that read ahead would have all of the 200 MiB in memory before the limit of 1 MiB is seen.
    await expect(store.put(source, { maxSizeBytes: MiB })).rejects.toMatchObject({ code: "ARTIFACT_TOO_LARGE" });
    expect(produced).toBeLessThan(2 * MiB);
    source.destroy();
  });

  async function untilSomethingIsWritten(): Promise<void> {
    await expect.poll(async () => (await filesIn(directory)).some((name) => name.endsWith(".part"))).toBe(true);
  }
});

describe("DiskArtifactStore on a full disk", () => {
  // The only disk that is safe to fill is one of our own, which root alone can mount.
  test.skipIf(process.getuid?.() !== 0)("answers STORAGE_FULL, leaves nothing behind and works on", async () => {
    await exec("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", directory]);
    try {
      const store = await openStore();
      const upload = store.put(Readable.from(chunks(randomBytes(2 * MiB))), { maxSizeBytes: 4 * MiB });
      await expect(upload).rejects.toMatchObject({ code: "STORAGE_FULL" });
      expect(await filesIn(directory)).toEqual([]);
      const small = await store.put(Readable.from([randomBytes(500_000)]), { maxSizeBytes: MiB });
      expect(await filesIn(directory)).toEqual([small.sha256]);
    } finally {
      await exec("umount", [directory]);
    }
  });
});

describe("DiskArtifactStore.open and delete", () => {
  test("a range gives exactly its bytes, both ends included", async () => {
    const { store, stored, bytes } = await storeWithOne();
    expect(await buffer(await store.open(stored, { start: 10, end: 19 }))).toEqual(bytes.subarray(10, 20));
    expect(await buffer(await store.open(stored, { start: 999, end: 999 }))).toEqual(bytes.subarray(999));
  });

  test("an absent or a truncated file is ARTIFACT_MISSING, not a short download", async () => {
    const { store, stored } = await storeWithOne();
    await expect(store.open({ ...stored, sha256: "a".repeat(64) })).rejects.toMatchObject({ code: "ARTIFACT_MISSING" });
    await writeFile(join(directory, stored.sha256), "short");
    await expect(store.open(stored)).rejects.toMatchObject({ code: "ARTIFACT_MISSING" });
    expect(await holdsArtifact(store, stored)).toBe(false);
  });

  test("a deleted artifact is gone, a download of it in progress goes on to its end", async () => {
    const { store, stored, bytes } = await storeWithOne();
    const open = await store.open(stored);
    expect(await store.delete(stored.sha256)).toBe("deleted");
    expect(await store.delete(stored.sha256)).toBe("absent");
    expect(await buffer(open)).toEqual(bytes);
    await expect(store.open(stored)).rejects.toMatchObject({ code: "ARTIFACT_MISSING" });
  });

  test.each(["../installation.json", "", "A".repeat(64), `${"a".repeat(64)}/..`])(
    "no name but a hash reaches the disk: %j",
    async (name) => {
      const store = await openStore();
      await expect(store.open({ sha256: name, sizeBytes: 1 })).rejects.toThrow(RangeError);
      await expect(store.delete(name)).rejects.toThrow(RangeError);
    },
  );

  async function storeWithOne() {
    const store = await openStore();
    const bytes = randomBytes(1000);
    return { store, bytes, stored: await store.put(Readable.from([bytes]), { maxSizeBytes: MiB }) };
  }
});

describe("DiskArtifactStore.open(directory)", () => {
  test("makes and marks an absent folder; the same installation opens it again", async () => {
    const folder = join(directory, "new", "folder");
    await openStore({ in: folder });
    expect(JSON.parse(await readFile(join(folder, "installation.json"), "utf8"))).toEqual({ installationId });
    await openStore({ in: folder });
  });

  test("ten processes may open a new folder at once", async () => {
    await Promise.all(Array.from({ length: 10 }, () => openStore()));
    expect(await readdir(directory)).toEqual(["installation.json"]);
  });

  test("refuses another installation's folder, naming both and the variable to set", async () => {
    await openStore();
    const opened = DiskArtifactStore.open({ directory, installationId: otherInstallationId });
    await expect(opened).rejects.toMatchObject({ code: "ARTIFACT_DIR_REFUSED" });
    await expect(opened).rejects.toThrow(new RegExp(`${installationId}.*${otherInstallationId}.*OTA_ARTIFACT_DIR`));
  });

  test("two installations that open one new folder at once: one of them gets it", async () => {
    const opened = await Promise.allSettled(
      [installationId, otherInstallationId].map((id) => DiskArtifactStore.open({ directory, installationId: id })),
    );
    expect(opened.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  test("refuses a folder that holds something else, and touches nothing in it", async () => {
    await writeFile(join(directory, "holiday.jpg"), "x");
    await expect(openStore()).rejects.toThrow(/not empty.*holiday\.jpg/);
    expect(await readdir(directory)).toEqual(["holiday.jpg"]);
  });

  test.each(["", "{}", "[]", "null", "{"])("refuses a folder whose marker is damaged: %j", async (text) => {
    await writeFile(join(directory, "installation.json"), text);
    await expect(openStore()).rejects.toMatchObject({ code: "ARTIFACT_DIR_REFUSED" });
  });

  test("the root of a file system, with its lost+found, may be the folder", async () => {
    await mkdir(join(directory, "lost+found"));
    await openStore();
  });

  test("removes what a crash has left; an upload of another process, and any other file, stays", async () => {
    const { sha256 } = await (await openStore()).put(Readable.from([randomBytes(10)]), { maxSizeBytes: MiB });
    const abandoned = "11111111-1111-4111-8111-111111111111.part";
    const inProgress = "22222222-2222-4222-8222-222222222222.part";
    const notOurs = "holiday.part";
    for (const name of [abandoned, inProgress, notOurs]) await writeFile(join(directory, name), "x");
    const anHourAgo = new Date(Date.now() - 61 * 60 * 1000);
    for (const name of [abandoned, notOurs, sha256]) await utimes(join(directory, name), anHourAgo, anHourAgo);
    await openStore();
    expect((await filesIn(directory)).sort()).toEqual([inProgress, notOurs, sha256].sort());
  });
});

function* chunks(bytes: Buffer): Generator<Buffer> {
  for (let offset = 0; offset < bytes.length; offset += 64 * 1024) yield bytes.subarray(offset, offset + 64 * 1024);
}

describe("DiskArtifactStore.probe", () => {
  const marker = () => join(directory, "installation.json");

  test("is well while the folder is there with its marker, and changes nothing", async () => {
    const store = await openStore();
    const before = await readdir(directory);
    await store.probe();
    expect(await readdir(directory)).toEqual(before);
  });

  test("fails where the folder has lost its marker, as the mount point of a disk that is gone", async () => {
    const store = await openStore();
    await rm(marker());
    await expect(store.probe()).rejects.toMatchObject({ code: "ARTIFACT_DIR_REFUSED" });
  });

  test("fails where the folder is another installation's", async () => {
    const store = await openStore();
    await writeFile(marker(), JSON.stringify({ installationId: otherInstallationId }));
    await expect(store.probe()).rejects.toMatchObject({ code: "ARTIFACT_DIR_REFUSED" });
  });

  test("fails where the folder is gone", async () => {
    const store = await openStore();
    await rm(directory, { recursive: true });
    await expect(store.probe()).rejects.toThrow();
  });
});
