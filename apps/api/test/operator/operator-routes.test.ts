import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDevice, aFirmware, aProduct, uniqueName } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

const UNKNOWN_ID = "0197b1c0-0000-7000-8000-00000000ffff";

describe.each(["postgres", "embedded"] as const)("operators' routes on %s", { skip: !hasPostgres }, (database) => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startApi({ database });
    // A new embedded database takes some seconds of computing, on a busy machine many.
  }, 180_000);
  afterAll(() => api.close());

  describe("products", () => {
    test("a created product is where Location says, with the defaults", async () => {
      const name = uniqueName("hub");
      const created = await api.operator("POST", "/v1/products", { json: { name } });
      expect(created.status).toBe(201);
      expect(created.headers.get("location")).toBe(`/v1/products/${name}`);
      expect(created.body).toMatchObject({
        name,
        versionScheme: "semver",
        confirmBy: "version",
        pollIntervalSeconds: 300,
      });
      expect((await api.operator("GET", `/v1/products/${name}`)).body).toEqual(created.body);
    });

    test("a name is taken once: 409", async () => {
      const name = await aProduct(api);
      const again = await api.operator("POST", "/v1/products", { json: { name } });
      expect([again.status, again.body.code]).toEqual([409, "ALREADY_EXISTS"]);
    });

    test.each([
      ["a name with capitals", { name: "Hub" }],
      ["an unknown field", { name: "hub-x", colour: "red" }],
      ["an interval that no protocol can carry", { name: "hub-x", pollIntervalSeconds: 10 }],
      ["no name", {}],
    ])("%s is refused with the field's name", async (_what, json) => {
      const refused = await api.operator("POST", "/v1/products", { json });
      expect([refused.status, refused.body.code]).toEqual([422, "FIELDS_INVALID"]);
      expect(refused.body.errors[0].field).toMatch(/^body\.(name|colour|pollIntervalSeconds)$/);
    });
  });

  describe("lists", () => {
    test("pages lead through everything once, newest first, and end", async () => {
      const product = await aProduct(api);
      const made = [];
      for (let i = 0; i < 5; i += 1) made.push((await aDevice(api, { product })).id);
      const seen: string[] = [];
      let pages = 0;
      for (let cursor: string | null = ""; cursor !== null; pages += 1) {
        const query: string = cursor === "" ? "" : `&cursor=${cursor}`;
        const page = await api.operator("GET", `/v1/devices?product=${product}&limit=2${query}`);
        seen.push(...page.body.items.map(({ id }: { id: string }) => id));
        cursor = page.body.nextCursor;
      }
      expect(seen).toEqual(made.reverse());
      expect(pages).toBe(3);
    });

    test.each([
      ["limit=0", "FIELDS_INVALID"],
      ["limit=201", "FIELDS_INVALID"],
      ["limit=x", "FIELDS_INVALID"],
      ["limit=1&limit=2", "FIELDS_INVALID"],
      ["cursor=nonsense", "INVALID_CURSOR"],
      ["colour=red", "FIELDS_INVALID"],
    ])("?%s is refused", async (query, code) => {
      const refused = await api.operator("GET", `/v1/products?${query}`);
      expect([refused.status, refused.body.code]).toEqual([422, code]);
    });
  });

  describe("firmware", () => {
    test("goes from draft over released to withdrawn, and is offered only while released", async () => {
      const product = await aProduct(api);
      const device = await aDevice(api, { product });
      const firmware = await aFirmware(api, { product, release: false });
      const decision = async () =>
        (await device.call("POST", "/v1/check", { json: { version: "1.0.0" } })).body.decision;
      expect(await decision()).toBe("none");

      const released = await api.operator("POST", `/v1/firmware/${firmware.id}/release`, {
        json: { startRollout: true, priority: 5 },
      });
      expect(released.body).toMatchObject({
        state: "released",
        rollouts: [{ channel: "stable", priority: 5, percentage: 100 }],
      });
      expect(await decision()).toBe("update");

      const withdrawn = await api.operator("POST", `/v1/firmware/${firmware.id}/withdraw`);
      expect(withdrawn.body).toMatchObject({ state: "withdrawn", rollouts: [{ state: "stopped" }] });
      expect(await decision()).toBe("none");
      const again = await api.operator("POST", `/v1/firmware/${firmware.id}/release`);
      expect([again.status, again.body.code]).toEqual([409, "INVALID_STATE"]);
    });

    test("withdrawn in the middle of a download, the device is told to stop, and fetches no further byte", async () => {
      const product = await aProduct(api);
      const device = await aDevice(api, { product });
      const { id } = await aFirmware(api, { product });
      const { attempt } = (await device.call("POST", "/v1/check")).body;
      const report = (state: string) => device.call("POST", `/v1/attempts/${attempt.id}/reports`, { json: { state } });
      await report("downloading");
      await api.operator("POST", `/v1/firmware/${id}/withdraw`);

      expect((await device.call("GET", `/v1/firmware/${id}/artifact`)).status).toBe(410);
      const told = (await device.call("POST", "/v1/check")).body;
      expect(told).toMatchObject({ decision: "none", stopping: { id: attempt.id, number: 1 } });
      expect((await report("cancelled")).body).toEqual({
        attempt: { id: attempt.id, state: "cancelled" },
        effect: "moved",
      });
      expect((await device.call("POST", "/v1/check")).body).not.toHaveProperty("stopping");
    });

    test("a release to another channel reaches that channel's devices alone", async () => {
      const product = await aProduct(api);
      const [stable, beta] = [await aDevice(api, { product }), await aDevice(api, { product, channel: "beta" })];
      const { id } = await aFirmware(api, { product, release: false });
      await api.operator("POST", `/v1/firmware/${id}/release`, { json: { startRollout: true, channel: "beta" } });
      expect((await stable.call("POST", "/v1/check")).body.decision).toBe("none");
      expect((await beta.call("POST", "/v1/check")).body.decision).toBe("update");
    });

    test("lists are by state, and reading one gives what the list gave", async () => {
      const product = await aProduct(api);
      const draft = await aFirmware(api, { product, version: "1.0.0", release: false });
      await aFirmware(api, { product, version: "2.0.0" });
      const drafts = await api.operator("GET", `/v1/products/${product}/firmware?state=draft`);
      expect(drafts.body.items.map(({ id }: { id: string }) => id)).toEqual([draft.id]);
      expect((await api.operator("GET", `/v1/firmware/${draft.id}`)).body).toEqual(drafts.body.items[0]);
    });
  });

  describe("devices", () => {
    test("a token is shown once and works; after a rotation without an overlap only the new one does", async () => {
      const product = await aProduct(api);
      const device = await aDevice(api, { product });
      expect(device.token).toMatch(/^[\w-]{43}$/);
      expect(JSON.stringify((await api.operator("GET", `/v1/devices/${device.id}`)).body)).not.toContain(device.token);
      const rotated = await api.operator("POST", `/v1/devices/${device.id}/token`, {
        json: { overlapSeconds: 0 },
      });
      expect(rotated.body.device.id).toBe(device.id);
      const old = await device.call("POST", "/v1/check");
      expect([old.status, old.body.code]).toEqual([401, "DEVICE_TOKEN_INVALID"]);
      expect((await api.as(rotated.body.token)("POST", "/v1/check")).status).toBe(200);
    });

    test("a blocked device is offered nothing, an unblocked one again", async () => {
      const product = await aProduct(api);
      const device = await aDevice(api, { product });
      await aFirmware(api, { product });
      const patch = (json: object) => api.operator("PATCH", `/v1/devices/${device.id}`, { json });
      expect((await patch({ blocked: true })).body.blocked).toBe(true);
      expect((await device.call("POST", "/v1/check")).body).toMatchObject({
        decision: "none",
        reason: "DEVICE_BLOCKED",
      });
      await patch({ blocked: false, hardwareRevision: "rev-b" });
      expect((await device.call("POST", "/v1/check")).body.decision).toBe("update");
      expect((await patch({ hardwareRevision: null })).body).toMatchObject({
        hardwareRevision: null,
        channel: "stable",
      });
    });

    test("a change of nothing, or of what can't be changed, is refused", async () => {
      const device = await aDevice(api, { product: await aProduct(api) });
      for (const json of [{}, { serial: "other" }, { blocked: "yes" }, { channel: "Not A Channel" }]) {
        expect((await api.operator("PATCH", `/v1/devices/${device.id}`, { json })).status).toBe(422);
      }
    });

    test("a serial is taken once within a product, and free in another", async () => {
      const [product, other] = [await aProduct(api), await aProduct(api)];
      const { serial } = await aDevice(api, { product });
      const again = await api.operator("POST", `/v1/products/${product}/devices`, { json: { serial } });
      expect([again.status, again.body.code]).toEqual([409, "ALREADY_EXISTS"]);
      expect((await api.operator("POST", `/v1/products/${other}/devices`, { json: { serial } })).status).toBe(201);
      const found = await api.operator("GET", `/v1/devices?serial=${serial}`);
      expect(found.body.items.map(({ product }: { product: string }) => product)).toEqual([other, product]);
    });

    test.each(["a b", "a/b", "../x", "", "x".repeat(257), "näh", "a\u0000"])(
      "the serial %j is refused",
      async (serial) => {
        const product = await aProduct(api);
        const refused = await api.operator("POST", `/v1/products/${product}/devices`, { json: { serial } });
        expect([refused.status, refused.body.code]).toEqual([422, "FIELDS_INVALID"]);
      },
    );
  });

  test("an explanation gives the decision that the check makes, and every candidate with its reason", async () => {
    const product = await aProduct(api);
    const device = await aDevice(api, { product });
    const old = await aFirmware(api, { product, version: "1.0.0" });
    const fresh = await aFirmware(api, { product, version: "2.0.0" });
    await device.call("POST", "/v1/check", { json: { version: "1.5.0" } });
    const { body } = await api.operator("GET", `/v1/devices/${device.id}/explanation`);
    expect(body.decision).toEqual({ decision: "update", firmwareId: fresh.id, version: "2.0.0" });
    expect(body.device.runs).toEqual({ known: "version", version: "1.5.0" });
    expect(body.advice).toBeNull();
    expect(body.live).toMatchObject({ state: "offered", version: "2.0.0" });
    const reasons = body.candidates.map((candidate: { target: { firmwareId: string }; reason: string | null }) => [
      candidate.target.firmwareId,
      candidate.reason,
    ]);
    expect(reasons).toEqual([
      [fresh.id, null],
      [old.id, "DOWNGRADE_REFUSED"],
    ]);
  });

  test("an upgrade's history tells the whole way of a device, in the order of receipt", async () => {
    const product = await aProduct(api);
    const device = await aDevice(api, { product });
    const firmware = await aFirmware(api, { product, version: "2.0.0" });
    const { attempt, upgradeId } = (await device.call("POST", "/v1/check", { json: { version: "1.0.0" } })).body;
    for (const report of [
      { state: "downloading", progressPercent: 40 },
      { state: "downloaded" },
      { state: "installed", message: "ok" },
    ]) {
      expect((await device.call("POST", `/v1/attempts/${attempt.id}/reports`, { json: report })).status).toBe(200);
    }
    await device.call("POST", "/v1/check", { json: { version: "2.0.0" } });

    const { body } = await api.operator("GET", `/v1/upgrades/${upgradeId}`);
    expect(body).toMatchObject({
      fromVersion: "1.0.0",
      firmware: { id: firmware.id },
      attempt: { state: "succeeded", number: 1 },
    });
    const [{ events }] = body.attempts;
    expect(events.map(({ toState }: { toState: string }) => toState)).toEqual([
      ...["offered", "downloading", "downloaded", "installed", "succeeded"],
    ]);
    expect(events.map(({ seq }: { seq: number }) => seq)).toEqual([1, 2, 3, 4, 5]);
    const listed = await api.operator("GET", `/v1/upgrades?deviceId=${device.id}&state=succeeded`);
    expect(listed.body.items.map(({ id }: { id: string }) => id)).toEqual([upgradeId]);
    expect((await api.operator("GET", `/v1/upgrades?firmwareId=${firmware.id}&state=failed`)).body.items).toEqual([]);
  });

  describe("an operator's say in an upgrade", () => {
    const aDeviceInAttempt = async () => {
      const product = await aProduct(api);
      const device = await aDevice(api, { product });
      await aFirmware(api, { product, version: "2.0.0" });
      const { attempt, upgradeId } = (await device.call("POST", "/v1/check", { json: { version: "1.0.0" } })).body;
      const report = (state: string) => device.call("POST", `/v1/attempts/${attempt.id}/reports`, { json: { state } });
      const change = (what: "cancel" | "reset") => api.operator("POST", `/v1/upgrades/${upgradeId}/${what}`);
      return { product, device, attempt, upgradeId, report, change };
    };
    const UPGRADE_CANCELLED = { decision: "none", reason: "UPGRADE_CANCELLED" };

    test("a cancelled upgrade stops at the device's next check, and ends with its answer", async () => {
      const { device, attempt, report, change, upgradeId } = await aDeviceInAttempt();
      await report("downloading");
      expect((await change("cancel")).body).toMatchObject({ id: upgradeId, attempt: { state: "cancelling" } });
      const told = (await device.call("POST", "/v1/check")).body;
      expect(told).toMatchObject({ decision: "none", stopping: { id: attempt.id } });
      expect((await report("cancelled")).body).toMatchObject({ attempt: { state: "cancelled" } });
      const again = await change("cancel");
      expect([again.status, again.body.attempt.state]).toEqual([200, "cancelled"]);
      expect((await device.call("POST", "/v1/check")).body).toMatchObject(UPGRADE_CANCELLED);
      expect((await api.operator("GET", `/v1/devices/${device.id}/explanation`)).body).toMatchObject({
        decision: UPGRADE_CANCELLED,
        advice: expect.stringContaining("reset it"),
        candidates: [{ reason: "UPGRADE_CANCELLED" }],
      });
    });

    test("a cancelled upgrade is not tried again, whatever the pause, until it is reset", async () => {
      const { product, device, report, change, upgradeId } = await aDeviceInAttempt();
      await api.operator("PATCH", `/v1/products/${product}`, { json: { backoffSeconds: 0 } });
      await report("failed");
      expect((await change("cancel")).body).toMatchObject({ cancelled: true, attempt: { state: "failed" } });
      expect((await device.call("POST", "/v1/check")).body).toMatchObject(UPGRADE_CANCELLED);
      expect((await change("reset")).body).toMatchObject({ cancelled: false });
      expect((await device.call("POST", "/v1/check")).body).toMatchObject({ upgradeId, attempt: { number: 2 } });
    });

    test("a device that could not stop, and failed, is not offered the firmware again", async () => {
      const { product, device, report, change } = await aDeviceInAttempt();
      await api.operator("PATCH", `/v1/products/${product}`, { json: { backoffSeconds: 0 } });
      await report("downloading");
      await change("cancel");
      await report("cancel_rejected");
      expect((await device.call("POST", "/v1/check")).body).toMatchObject({ attempt: { state: "installing" } });
      await report("failed");
      expect((await device.call("POST", "/v1/check")).body).toMatchObject(UPGRADE_CANCELLED);
    });

    test("a reset upgrade is tried again at once; one that has succeeded cannot be cancelled", async () => {
      const { device, report, change, upgradeId } = await aDeviceInAttempt();
      await report("failed");
      expect((await device.call("POST", "/v1/check")).body).toMatchObject({ decision: "none", reason: "BACKOFF" });
      expect((await change("reset")).body).toMatchObject({ attemptsForgiven: 1, attempts: [{ state: "failed" }] });
      expect((await device.call("POST", "/v1/check")).body).toMatchObject({ upgradeId, attempt: { number: 2 } });
      await device.call("POST", "/v1/check", { json: { version: "2.0.0" } });
      const refused = await change("cancel");
      expect([refused.status, refused.body.code]).toEqual([409, "INVALID_STATE"]);
    });
  });

  describe("operator keys", () => {
    test("a new key works, is listed without its secret, and is refused once it is revoked", async () => {
      const { operatorKey, key } = (await api.operator("POST", "/v1/operator-keys", { json: { name: "pipeline" } }))
        .body;
      const other = api.as(key);
      expect((await other("GET", "/v1/products")).status).toBe(200);
      const listed = await api.operator("GET", "/v1/operator-keys");
      expect(listed.body.items).toContainEqual(operatorKey);
      expect(listed.bytes.toString()).not.toContain(key);
      const revoked = await api.operator("POST", `/v1/operator-keys/${operatorKey.id}/revoke`);
      expect(revoked.body.revokedAt).not.toBeNull();
      const refused = await other("GET", "/v1/products");
      expect([refused.status, refused.body.code]).toEqual([401, "OPERATOR_KEY_INVALID"]);
    });

    test("the last key can't be revoked", async () => {
      const { items } = (await api.operator("GET", "/v1/operator-keys")).body;
      const live = items.filter(({ revokedAt }: { revokedAt: string | null }) => revokedAt === null);
      expect(live).toHaveLength(1);
      const refused = await api.operator("POST", `/v1/operator-keys/${live[0].id}/revoke`);
      expect([refused.status, refused.body.code]).toEqual([409, "LAST_OPERATOR_KEY"]);
    });
  });

  test("every change is in the audit log with who, what, before and after, and without secrets", async () => {
    const product = await aProduct(api);
    const device = await aDevice(api, { product });
    await api.operator("PATCH", `/v1/devices/${device.id}`, { json: { blocked: true } });
    const log = await api.operator("GET", `/v1/audit?subjectId=${device.id}`);
    expect(log.body.items).toMatchObject([
      {
        action: "device.update",
        actor: { kind: "operator", name: "test" },
        before: { blocked: false },
        after: { blocked: true },
      },
      { action: "device.register", before: null, after: { serial: device.serial } },
    ]);
    expect(log.bytes.toString()).not.toContain(device.token);
    expect((await api.operator("GET", `/v1/audit?subjectId=${product}`)).body.items).toMatchObject([
      { action: "product.create" },
    ]);
  });

  test.each([
    ["GET", `/v1/products/none-such`],
    ["GET", `/v1/products/none-such/firmware`],
    ["GET", `/v1/devices?product=none-such`],
    ["GET", `/v1/devices/${UNKNOWN_ID}`],
    ["PATCH", `/v1/devices/${UNKNOWN_ID}`],
    ["POST", `/v1/devices/${UNKNOWN_ID}/token`],
    ["GET", `/v1/devices/${UNKNOWN_ID}/explanation`],
    ["GET", `/v1/firmware/${UNKNOWN_ID}`],
    ["POST", `/v1/firmware/${UNKNOWN_ID}/release`],
    ["POST", `/v1/firmware/${UNKNOWN_ID}/withdraw`],
    ["GET", `/v1/upgrades/${UNKNOWN_ID}`],
    ["POST", `/v1/upgrades/${UNKNOWN_ID}/cancel`],
    ["POST", `/v1/upgrades/${UNKNOWN_ID}/reset`],
    ["GET", `/v1/upgrades?deviceId=${UNKNOWN_ID}`],
    ["POST", `/v1/operator-keys/${UNKNOWN_ID}/revoke`],
  ])("%s %s: what is not there answers 404", async (method, path) => {
    const answer = await api.operator(method, path, method === "PATCH" ? { json: { blocked: true } } : {});
    expect([answer.status, answer.body.code]).toEqual([404, "NOT_FOUND"]);
  });

  test("a device token opens no operator's route, nor an operator key a device's", async () => {
    const device = await aDevice(api, { product: await aProduct(api) });
    expect((await device.call("GET", "/v1/products")).body.code).toBe("OPERATOR_KEY_INVALID");
    expect((await api.operator("POST", "/v1/check")).body.code).toBe("DEVICE_TOKEN_INVALID");
    expect((await api.as(undefined)("GET", "/v1/products")).body.code).toBe("CREDENTIALS_MISSING");
  });
});
