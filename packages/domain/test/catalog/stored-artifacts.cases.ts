import { expect, it } from "vitest";
import {
  deleteFirmware,
  deleteUnreferencedArtifact,
  getFirmware,
  installationId,
  registerFirmware,
  releaseFirmware,
  unreferencedArtifacts,
} from "../../src/index.ts";
import { casesOn } from "../support/databases.ts";
import { codeOf } from "../support/errors.ts";
import { aProduct, artifactFacts, SYSTEM, uniqueName } from "../support/records.ts";

export const sourceUrlCases = casesOn("a file on another host", (database) => {
  const register = async (sourceUrl: string, artifact: object = {}) =>
    registerFirmware(database().db, {
      ...{ actor: SYSTEM, product: await aProduct(database().db), version: "1.0.0", sourceUrl },
      artifact: { ...artifactFacts(), ...artifact },
    });

  it("is registered with its size and SHA-256, and the other hashes where they are known", async () => {
    const { db } = database();
    const made = await register("https://cdn.example/a/b.bin?sig=%2B1&x=a+b", { sha1: null, md5: null });
    expect(made).toMatchObject({
      sourceUrl: "https://cdn.example/a/b.bin?sig=%2B1&x=a+b",
      artifact: { ...artifactFacts(), sha1: null, md5: null },
    });
    expect(await getFirmware(db, { firmwareId: made.id })).toEqual(made);
    expect((await releaseFirmware(db, { actor: SYSTEM, firmwareId: made.id })).state).toBe("released");
  });

  it.each([
    "ftp://cdn.example/a",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "//cdn.example/a",
    "https:cdn.example/a",
    "https://",
    "https://user@cdn.example/a",
    "https://user:secret@cdn.example/a",
    "https://cdn.example/a#part",
    "https://cdn.example/a b",
    "https://cdn.example/a\r\nSet-Cookie: x",
    "https://cdn.example\\a",
    "https://cdn.exämple/a",
    "https://cdn.example:99999/a",
    `https://cdn.example/${"a".repeat(2048)}`,
    "",
  ])("%j is refused as its URL", async (sourceUrl) => {
    expect(await codeOf(register(sourceUrl))).toBe("INVALID_FIELD");
  });

  it.each([{ sizeBytes: 0 }, { sha256: "" }, { sha256: "A".repeat(64) }, { sha1: "x" }])(
    "%j is refused: size and SHA-256 are there before it can be released",
    async (artifact) => {
      expect(await codeOf(register("https://cdn.example/a", artifact))).toBe("INVALID_FIELD");
    },
  );

  it("one that is stored here has all its hashes", async () => {
    const { db } = database();
    const input = { actor: SYSTEM, product: await aProduct(db), version: "1.0.0" };
    const artifact = { ...artifactFacts(), md5: null };
    expect(await codeOf(registerFirmware(db, { ...input, artifact }))).toBe("INVALID_FIELD");
  });
});

export const storedArtifactCases = casesOn("stored artifacts", (database) => {
  const registerStored = async (content: string, isStored = async () => true) =>
    registerFirmware(database().db, {
      ...{ actor: SYSTEM, product: await aProduct(database().db), version: "1.0.0" },
      ...{ artifact: artifactFacts(content), isStored },
    });

  it("are unreferenced while no firmware has them, one on another host not counted", async () => {
    const { db } = database();
    const [here, elsewhere, nowhere] = [uniqueName("here"), uniqueName("elsewhere"), uniqueName("nowhere")];
    const hashes = [here, elsewhere, nowhere].map((content) => artifactFacts(content).sha256);
    const { id: firmwareId } = await registerStored(here);
    await registerFirmware(db, {
      ...{ actor: SYSTEM, product: await aProduct(db), version: "1.0.0" },
      ...{ artifact: artifactFacts(elsewhere), sourceUrl: "https://cdn.example/a" },
    });
    expect(await unreferencedArtifacts(db, hashes)).toEqual(hashes.slice(1));
    await deleteFirmware(db, { actor: SYSTEM, firmwareId });
    expect(await unreferencedArtifacts(db, hashes)).toEqual(hashes);
    expect(await unreferencedArtifacts(db, [])).toEqual([]);
  });

  it("are not removed while any firmware has them", async () => {
    const { db } = database();
    await installationId(db);
    const content = uniqueName("content");
    const { sha256 } = artifactFacts(content);
    const remove = () => deleteUnreferencedArtifact(db, { sha256, remove: async () => "removed" });
    expect(await remove()).toBe("removed");
    await registerStored(content);
    expect(await remove()).toBe("referenced");
  });

  it("that are gone when they are to be registered are to be uploaded again, and the version stays free", async () => {
    const { db } = database();
    const input = { actor: SYSTEM, product: await aProduct(db), version: "1.0.0", artifact: artifactFacts() };
    expect(await codeOf(registerFirmware(db, { ...input, isStored: async () => false }))).toBe("SERVICE_BUSY");
    expect(await codeOf(registerFirmware(db, { ...input, isStored: async () => true }))).toBe("no error");
  });
});
