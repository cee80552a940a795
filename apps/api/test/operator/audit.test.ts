import { createHash } from "node:crypto";
import { hasPostgres } from "@ota/testkit";
import { sql } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { operatorRoutes } from "../../src/operator/routes.ts";
import { aDevice, aFirmware, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";
import { AUDITED_CHANGES } from "./audited-changes.ts";

const WRITING = operatorRoutes.filter(({ method }) => method !== "GET");

describe("the audit log", { skip: !hasPostgres }, () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  /** The entries that were added while the work was done, newest first. */
  async function added(work: () => Promise<unknown>) {
    const newest = async (limit: number) => (await api.operator("GET", `/v1/audit?limit=${limit}`)).body.items;
    const [before] = await newest(1);
    await work();
    const entries = await newest(20);
    const known = entries.findIndex(({ id }: { id: string }) => id === before?.id);
    return entries.slice(0, known === -1 ? undefined : known);
  }

  test("there is a change to try for each route that writes, and for no other", () => {
    expect(Object.keys(AUDITED_CHANGES).sort()).toEqual(WRITING.map(({ operationId }) => operationId).sort());
  });

  test.each(WRITING.map((route) => [route.operationId, route] as const))(
    "%s writes one entry, with who, what, before and after, and without secrets",
    async (operationId, { method }) => {
      const change = AUDITED_CHANGES[operationId];
      if (change === undefined) throw new Error(`There is no change to try for ${operationId}.`);
      const { path, init } = await change.prepare(api);
      let answer = "";
      const entries = await added(async () => {
        const { status, bytes } = await api.operator(method, path, init);
        expect(status).toBeLessThan(300);
        answer = bytes.toString();
      });
      expect(entries).toHaveLength(1);
      const [entry] = entries;
      const [before, after] = [change.facts !== "after", change.facts !== "before"];
      expect(entry).toMatchObject({
        actor: { kind: "operator", name: "test" },
        action: change.action,
        before: before ? expect.any(Object) : null,
        after: after ? expect.any(Object) : null,
      });
      if (before && after) expect(entry.before).not.toEqual(entry.after);
      expect(`${path} ${JSON.stringify(init?.json)} ${answer}`).toContain(entry.subjectId);

      const secrets = secretsIn(answer);
      expect(secrets.length > 0).toBe(change.secret === true);
      const text = JSON.stringify(entry);
      for (const secret of [...secrets, api.operatorKey]) {
        for (const form of [secret, ...hashesOf(secret)]) expect(text).not.toContain(form);
      }
      expect(text).not.toMatch(/token=|BEGIN/);
    },
  );

  test("a rollout's terms are shown as the rollout itself shows them", async () => {
    const { id: firmwareId } = await aFirmware(api, { product: await aProduct(api), release: false });
    const terms = {
      ...{ window: { days: [1, 7], from: "22:00", to: "04:05" }, attributeFilter: { attribute: "fromMinute", eq: 5 } },
      errorThreshold: { failurePercentage: 2.5, minOutcomes: 20 },
      phases: [{ percentage: 12.34, minSucceeded: 5, minSuccessPercentage: 99.5 }],
    };
    const made = (await api.operator("POST", `/v1/firmware/${firmwareId}/rollouts`, { json: terms })).body;
    await api.operator("PATCH", `/v1/rollouts/${made.id}`, { json: { phases: [], percentage: 50, window: null } });
    const { items } = (await api.operator("GET", `/v1/audit?subjectId=${made.id}`)).body;
    expect(items).toMatchObject([
      {
        before: { phases: terms.phases, percentage: 12.34, window: terms.window },
        after: { phases: [], percentage: 50, window: null },
      },
      { before: null, after: { ...terms, percentage: 12.34 } },
    ]);
    expect(JSON.stringify(items)).not.toMatch(/BasisPoints|"fromMinute":/);
  });

  test("a change that is refused writes nothing", async () => {
    const product = await aProduct(api);
    const refused = await added(async () => {
      const again = await api.operator("POST", "/v1/products", { json: { name: product } });
      expect(again.status).toBe(409);
      expect((await api.operator("POST", "/v1/products", { json: {} })).status).toBe(422);
    });
    expect(refused).toEqual([]);
  });

  describe("as a list", () => {
    const list = async (query: string) => (await api.operator("GET", `/v1/audit?${query}`)).body;

    test("is by subject, actor, action and time, each alone and together", async () => {
      const product = await aProduct(api);
      const made = (await api.operator("POST", "/v1/operator-keys", { json: { name: "other" } })).body;
      const other = api.as(made.key);
      const since = new Date(Date.now() + 1000).toISOString();
      const { id } = await aDevice(api, { product });
      await other("PATCH", `/v1/devices/${id}`, { json: { channel: "beta" } });
      await other("PATCH", `/v1/devices/${id}`, { json: { blocked: true } });
      await api.operator("PATCH", `/v1/devices/${id}`, { json: { blocked: false } });
      const actions = async (query: string) =>
        (await list(query)).items.map(({ action }: { action: string }) => action);

      expect(await actions(`subjectId=${id}`)).toEqual([...Array(3).fill("device.update"), "device.register"]);
      expect(await actions(`actor=${made.operatorKey.id}`)).toEqual(["device.update", "device.update"]);
      expect(await actions(`subjectId=${id}&action=device.register`)).toEqual(["device.register"]);
      expect(await actions(`actor=${made.operatorKey.id}&action=device.register`)).toEqual([]);
      expect((await actions("actor=system")).every((action: string) => action === "operator_key.create")).toBe(true);
      expect(await actions(`since=${since}`)).toEqual([]);
      expect((await actions(`until=${since}`)).length).toBeGreaterThan(3);
      const { at } = (await list(`subjectId=${id}&action=device.register`)).items[0];
      expect(await actions(`subjectId=${id}&until=${at}`)).toEqual([]);
      expect((await actions(`subjectId=${id}&since=${at}`)).length).toBe(4);
    });

    test("its pages keep to the filter, and repeat and leave out nothing while entries are added", async () => {
      const { id } = await aDevice(api, { product: await aProduct(api) });
      for (const channel of ["a", "b", "c", "d", "e"]) {
        await api.operator("PATCH", `/v1/devices/${id}`, { json: { channel } });
      }
      const seen: string[] = [];
      for (let cursor: string | null = ""; cursor !== null; ) {
        const page = await list(
          `action=device.update&subjectId=${id}&limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`,
        );
        seen.push(...page.items.map(({ after }: { after: { channel: string } }) => after.channel));
        cursor = page.nextCursor;
        await api.operator("PATCH", `/v1/devices/${id}`, { json: { channel: `new-${seen.length}` } });
      }
      expect(seen).toEqual(["e", "d", "c", "b", "a"]);
    });

    test.each([
      "actor=nobody",
      "action=nothing",
      "since=yesterday",
      "until=2026-02-30T00:00:00Z",
      "since=",
      "subjectId=",
    ])("?%s is refused", async (query) => {
      const refused = await api.operator("GET", `/v1/audit?${query}`);
      expect([refused.status, refused.body.code]).toEqual([422, "FIELDS_INVALID"]);
    });
  });

  test.each(["update audit_log set action = 'x'", "delete from audit_log", "truncate audit_log"])(
    "the database refuses: %s",
    async (statement) => {
      await expect(api.db.execute(sql.raw(statement))).rejects.toThrow();
    },
  );
});

/** Tokens and keys are 256 bits in base64url. */
function secretsIn(text: string): string[] {
  return text.match(/(?<![\w+/-])[\w-]{43}(?![\w+/=-])/g) ?? [];
}

function hashesOf(secret: string): string[] {
  const digest = createHash("sha256").update(secret).digest();
  return [digest.toString("hex"), digest.toString("base64"), digest.toString("base64url")];
}
