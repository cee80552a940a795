import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { expect, it } from "vitest";
import {
  changeAllowList,
  checkNewFirmware,
  createRollout,
  deleteFirmware,
  firmwareManifest,
  getProduct,
  listAudit,
  listRollouts,
  registerFirmware,
  releaseFirmware,
  removeSigningKey,
  setSigningKey,
  signFirmware,
  takeRolloutStep,
  updateRollout,
} from "../../src/index.ts";
import { casesOn } from "../support/databases.ts";
import { codeOf, inParallel, tally } from "../support/errors.ts";
import { aDevice, aFirmware, aProduct, artifactFacts, SYSTEM } from "../support/records.ts";

function newKey() {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const pem = publicKey.export({ format: "pem", type: "spki" }).toString();
  const raw = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("base64");
  return { privateKey, pem, raw };
}

/** Signs as an operator would, from the facts alone. */
function signatureOf(key: KeyObject, facts: { product: string; version: string }, change = (text: string) => text) {
  const { sizeBytes, sha256 } = artifactFacts(facts.version);
  const manifest = `ota-fw-v1\n${facts.product}\n${facts.version}\n${sizeBytes}\n${sha256}`;
  return sign(null, Buffer.from(change(manifest)), key).toString("base64");
}

const VERSION = "1.0.0";

export const signingCases = casesOn("signing", (database) => {
  const dbOf = () => database().db;
  const registerSigned = (product: string, signature: string) =>
    registerFirmware(dbOf(), { actor: SYSTEM, product, version: VERSION, artifact: artifactFacts(VERSION), signature });
  const setKey = (product: string, publicKey: string) => setSigningKey(dbOf(), { actor: SYSTEM, product, publicKey });
  const release = (firmwareId: string) => releaseFirmware(dbOf(), { actor: SYSTEM, firmwareId });

  it("a manifest is five lines without an end of line after the last", () => {
    const sha256 = "a".repeat(64);
    expect(firmwareManifest({ product: "hub", version: "1.0.0", sizeBytes: 17, sha256 }).toString("hex")).toBe(
      Buffer.from(`ota-fw-v1\nhub\n1.0.0\n17\n${sha256}`).toString("hex"),
    );
  });

  it("a key is taken as PEM and as the base64 of its bytes, which are the same key", async () => {
    const product = await aProduct(dbOf());
    const { pem, raw } = newKey();
    for (const text of [pem, raw, `\n${pem.trim()}`, `${raw.slice(0, 20)}\n${raw.slice(20)}\n`]) {
      expect((await setKey(product, text)).signingPublicKey).toBe(raw);
    }
    expect((await getProduct(dbOf(), { product })).signingPublicKey).toBe(raw);
    const { items } = await listAudit(dbOf(), { subjectId: product, action: "product.update" });
    expect(items).toMatchObject([{ before: { signingPublicKey: null }, after: { signingPublicKey: raw } }]);
    expect((await removeSigningKey(dbOf(), { actor: SYSTEM, product })).signingPublicKey).toBeNull();
  });

  it.each([
    ["nothing", ""],
    ["text", "hello"],
    ["31 bytes", Buffer.alloc(31).toString("base64")],
    ["base64url", Buffer.alloc(32, 255).toString("base64url")],
    ["a private key", newKey().privateKey.export({ format: "pem", type: "pkcs8" }).toString()],
    ["a key of another kind", pemOf("x25519")],
    ["a key of an older kind", pemOf("rsa")],
    ["damaged PEM", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"],
  ])("%s is refused as a key", async (_what, publicKey) => {
    expect(await codeOf(setKey(await aProduct(dbOf()), publicKey))).toBe("INVALID_FIELD");
  });

  it("a product that has a key releases only what is signed by it", async () => {
    const product = await aProduct(dbOf());
    const { privateKey, pem } = newKey();
    const unsigned = await aFirmware(dbOf(), { product, version: "0.9.0" });
    await setKey(product, pem);
    expect(await codeOf(release(unsigned.id))).toBe("SIGNATURE_REQUIRED");
    const signature = signatureOf(privateKey, { product, version: VERSION });
    const signed = await registerSigned(product, signature);
    expect(signed.signature).toBe(signature);
    expect((await release(signed.id)).state).toBe("released");
    await removeSigningKey(dbOf(), { actor: SYSTEM, product });
    expect(await codeOf(release(unsigned.id))).toBe("no error");
  });

  it("a draft is signed later; the same again changes nothing; what is released is signed no more", async () => {
    const product = await aProduct(dbOf());
    const { privateKey, raw } = newKey();
    const { id: firmwareId } = await aFirmware(dbOf(), { product, version: VERSION });
    const signature = signatureOf(privateKey, { product, version: VERSION });
    const change = () => signFirmware(dbOf(), { actor: SYSTEM, firmwareId, signature });
    expect(await codeOf(change())).toBe("INVALID_STATE");
    await setKey(product, raw);
    expect((await change()).signature).toBe(signature);
    await release(firmwareId);
    expect((await change()).signature).toBe(signature);
    const next = newKey();
    await setKey(product, next.pem);
    const other = signatureOf(next.privateKey, { product, version: VERSION });
    expect(await codeOf(signFirmware(dbOf(), { actor: SYSTEM, firmwareId, signature: other }))).toBe("INVALID_STATE");
    expect((await listAudit(dbOf(), { subjectId: firmwareId, action: "firmware.sign" })).items).toHaveLength(1);
  });

  it("after a rotation a draft is signed anew, and what was released stays so", async () => {
    const product = await aProduct(dbOf());
    const [old, next] = [newKey(), newKey()];
    await setKey(product, old.pem);
    const released = await registerSigned(product, signatureOf(old.privateKey, { product, version: VERSION }));
    await release(released.id);
    const facts = { product, version: "1.1.0" };
    const draft = await registerFirmware(dbOf(), {
      ...{ actor: SYSTEM, ...facts, artifact: artifactFacts(facts.version) },
      signature: signatureOf(old.privateKey, facts),
    });
    await setKey(product, next.pem);
    expect(await codeOf(release(draft.id))).toBe("SIGNATURE_REQUIRED");
    expect((await release(released.id)).state).toBe("released");
    const sign = (key: KeyObject) =>
      signFirmware(dbOf(), { actor: SYSTEM, firmwareId: draft.id, signature: signatureOf(key, facts) });
    expect(await codeOf(sign(old.privateKey))).toBe("SIGNATURE_INVALID");
    await sign(next.privateKey);
    expect((await release(draft.id)).state).toBe("released");
  });

  it.each([
    ["a line feed at the end", (text: string) => `${text}\n`],
    ["another version of the format", (text: string) => text.replace("ota-fw-v1", "ota-fw-v2")],
    ["another size", (text: string) => text.replace(/\n5\n/, "\n6\n")],
    ["another product", (text: string) => text.replace(/\n.*\n1/, "\nother\n1")],
    ["the hash in capitals", (text: string) => text.replace(/[0-9a-f]{64}$/, (hash) => hash.toUpperCase())],
    ["lines as on Windows", (text: string) => text.replaceAll("\n", "\r\n")],
  ])("a signature over a manifest with %s is refused, and nothing is registered", async (_what, change) => {
    const product = await aProduct(dbOf());
    const { privateKey, pem } = newKey();
    await setKey(product, pem);
    const facts = { product, version: VERSION };
    expect(signatureOf(privateKey, facts, change)).not.toBe(signatureOf(privateKey, facts));
    expect(await codeOf(registerSigned(product, signatureOf(privateKey, facts, change)))).toBe("SIGNATURE_INVALID");
    expect(await codeOf(registerSigned(product, signatureOf(privateKey, facts)))).toBe("no error");
  });

  it.each(["", "no base64!", Buffer.alloc(63).toString("base64"), Buffer.alloc(65).toString("base64")])(
    "the signature %j is refused before anything is looked up",
    async (signature) => {
      expect(await codeOf(checkNewFirmware(dbOf(), { product: "none-such", version: VERSION, signature }))).toBe(
        "INVALID_FIELD",
      );
    },
  );

  it("a signature for a product without a key is refused, before the upload too", async () => {
    const product = await aProduct(dbOf());
    const signature = signatureOf(newKey().privateKey, { product, version: VERSION });
    expect(await codeOf(checkNewFirmware(dbOf(), { product, version: VERSION, signature }))).toBe("INVALID_STATE");
    expect(await codeOf(registerSigned(product, signature))).toBe("INVALID_STATE");
  });

  it("whichever of a release and a new key comes first, no unsigned firmware is released under a key", async () => {
    for (let round = 0; round < 10; round += 1) {
      const product = await aProduct(dbOf());
      const { id } = await aFirmware(dbOf(), { product, version: VERSION });
      const [released] = await Promise.all([tally([release(id)]), setKey(product, newKey().pem)]);
      const { items } = await listAudit(dbOf(), { subjectId: id, action: "firmware.release" });
      expect(items).toHaveLength(released["no error"] ?? 0);
      expect(await codeOf(release(id))).toBe(items.length === 1 ? "no error" : "SIGNATURE_REQUIRED");
    }
  });
});

export const draftDeletionCases = casesOn("deleteFirmware", (database) => {
  it("frees the version, and leaves what was released", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const draft = await aFirmware(db, { product, version: VERSION });
    const remove = (firmwareId: string) => deleteFirmware(db, { actor: SYSTEM, firmwareId });
    await remove(draft.id);
    expect(await codeOf(remove(draft.id))).toBe("NOT_FOUND");
    const again = await aFirmware(db, { product, version: VERSION });
    await releaseFirmware(db, { actor: SYSTEM, firmwareId: again.id });
    expect(await codeOf(remove(again.id))).toBe("INVALID_STATE");
  });

  it("takes the rollouts that were made of the draft along, with their allow-lists and counters", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const { id: firmwareId } = await aFirmware(db, { product, version: VERSION });
    const { id: other } = await aFirmware(db, { product, version: "9.9.9" });
    const { device } = await aDevice(db, product);
    const kept = await createRollout(db, { actor: SYSTEM, firmwareId: other, maxConcurrent: 5 });
    const made = await createRollout(db, { actor: SYSTEM, firmwareId, maxConcurrent: 5 });
    const stopped = await createRollout(db, { actor: SYSTEM, firmwareId });
    await takeRolloutStep(db, { actor: SYSTEM, rolloutId: stopped.id, step: "stop" });
    const list = { actor: SYSTEM, rolloutId: made.id, change: "allow", deviceIds: [device.id] } as const;
    await changeAllowList(db, list);
    await deleteFirmware(db, { actor: SYSTEM, firmwareId });
    expect((await listRollouts(db, { product })).items).toEqual([kept]);
    expect((await listAudit(db, { subjectId: firmwareId })).items[0]).toMatchObject({
      action: "firmware.delete",
      before: { rollouts: [made.id, stopped.id] },
    });
    expect(await codeOf(changeAllowList(db, list))).toBe("NOT_FOUND");
  });

  it("of a draft while its rollout is changed by others leaves nothing but answers", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const { device } = await aDevice(db, product);
    const { id: firmwareId } = await aFirmware(db, { product, version: VERSION });
    const { id: rolloutId } = await createRollout(db, { actor: SYSTEM, firmwareId, maxConcurrent: 5 });
    const calls = inParallel<unknown>(20, (index) => {
      if (index === 10) return deleteFirmware(db, { actor: SYSTEM, firmwareId });
      if (index % 4 === 0) return createRollout(db, { actor: SYSTEM, firmwareId });
      if (index % 4 === 1) return updateRollout(db, { actor: SYSTEM, rolloutId, maxConcurrent: index });
      if (index % 4 === 2) return takeRolloutStep(db, { actor: SYSTEM, rolloutId, step: "stop" });
      return changeAllowList(db, { actor: SYSTEM, rolloutId, change: "allow", deviceIds: [device.id] });
    });
    const { NOT_FOUND: _, "no error": __, INVALID_STATE: ___, ...others } = await tally(calls);
    expect(others).toEqual({});
    expect(await codeOf(deleteFirmware(db, { actor: SYSTEM, firmwareId }))).toBe("NOT_FOUND");
  });

  it("of parallel deletions and a release, the firmware is either gone or released", async () => {
    const { db } = database();
    const product = await aProduct(db);
    const { id: firmwareId } = await aFirmware(db, { product, version: VERSION });
    const calls = inParallel<unknown>(10, (index) =>
      index === 5
        ? releaseFirmware(db, { actor: SYSTEM, firmwareId })
        : deleteFirmware(db, { actor: SYSTEM, firmwareId }),
    );
    const codes = await tally(calls);
    expect([
      { "no error": 1, NOT_FOUND: 9 },
      { "no error": 1, INVALID_STATE: 9 },
    ]).toContainEqual(codes);
  });
});

function pemOf(kind: "x25519" | "rsa"): string {
  const { publicKey } =
    kind === "rsa" ? generateKeyPairSync("rsa", { modulusLength: 2048 }) : generateKeyPairSync("x25519");
  return publicKey.export({ format: "pem", type: "spki" }).toString();
}
