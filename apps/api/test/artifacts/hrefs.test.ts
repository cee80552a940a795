import { hasPostgres } from "@ota/testkit";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aDevice, aFirmware, aProduct } from "../support/fleet.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

const SOURCE_URL = "https://cdn.example/hub.bin";

type Step =
  | { readonly kind: "release"; readonly elsewhere: boolean }
  | { readonly kind: "withdraw" }
  | { readonly kind: "report"; readonly state: string };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("release"), elsewhere: fc.boolean() }),
  fc.constant({ kind: "withdraw" } as const),
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("report"),
      state: fc.constantFrom("downloading", "downloaded", "installing", "installed", "failed", "cancelled"),
    }),
  },
);

describe("every address that is handed out", { skip: !hasPostgres }, () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  /** What the address answers, by the URL alone and by the device's token. */
  async function statusesOf(url: string, token: string): Promise<number[]> {
    const ask = (address: string, headers: Record<string, string>) =>
      fetch(address, { method: "HEAD", redirect: "manual", headers });
    const answers = [await ask(url, {}), await ask(url.split("?")[0] ?? "", { authorization: `Bearer ${token}` })];
    for (const { status, headers } of answers) if (status === 302) expect(headers.get("location")).toBe(SOURCE_URL);
    return answers.map(({ status }) => status);
  }

  test("in a check's answer is there, whatever was released, withdrawn and reported before", async () => {
    let offered = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 10 }), async (steps) => {
        const product = await aProduct(api, { confirmBy: "report" });
        const { call, token } = await aDevice(api, { product });
        const released: string[] = [];
        let attemptId: number | undefined;
        for (const [index, one] of [{ kind: "release", elsewhere: false } as const, ...steps].entries()) {
          if (one.kind === "release") released.push(await release(api, { product, index, ...one }));
          if (one.kind === "withdraw" && released.length > 0) {
            await api.operator("POST", `/v1/firmware/${released.pop()}/withdraw`);
          }
          if (one.kind === "report" && attemptId !== undefined) {
            await call("POST", `/v1/attempts/${attemptId}/reports`, { json: { state: one.state } });
          }
          const answer = (await call("POST", "/v1/check", { json: { version: "0.1.0" } })).body;
          attemptId = answer.attempt?.id ?? answer.stopping?.id ?? attemptId;
          if (answer.decision !== "update") continue;
          offered += 1;
          const statuses = await statusesOf(answer.firmware.url, token);
          expect(statuses.every((status) => status === 200 || status === 302)).toBe(true);
        }
      }),
      { numRuns: 25 },
    );
    expect(offered).toBeGreaterThan(25);
  }, 120_000);

  test("as Location of what was made is there", async () => {
    const product = await aProduct(api);
    const json = { version: "1.0.0", sourceUrl: SOURCE_URL, sizeBytes: 1, sha256: "a".repeat(64) };
    for (const made of [
      await api.operator("POST", "/v1/products", { json: { name: `${product}-next` } }),
      await api.operator("POST", `/v1/products/${product}/firmware/by-url`, { json }),
      await api.operator("POST", `/v1/products/${product}/firmware?version=2.0.0`, { bytes: Buffer.from("a") }),
      await api.operator("POST", `/v1/products/${product}/devices`, { json: { serial: "a" } }),
    ]) {
      expect(made.status).toBe(201);
      const location = made.headers.get("location");
      expect(location).not.toBeNull();
      expect((await api.operator("GET", location ?? "")).status).toBe(200);
    }
  });
});

async function release(
  api: TestApi,
  input: { readonly product: string; readonly index: number; readonly elsewhere: boolean },
): Promise<string> {
  const { product, index, elsewhere } = input;
  const version = `${index + 1}.0.0`;
  if (!elsewhere) return (await aFirmware(api, { product, version, sizeBytes: 10 })).id;
  const json = { version, sourceUrl: SOURCE_URL, sizeBytes: 1, sha256: "a".repeat(64) };
  const { id } = (await api.operator("POST", `/v1/products/${product}/firmware/by-url`, { json })).body;
  await api.operator("POST", `/v1/firmware/${id}/release`, { json: { startRollout: true } });
  return id;
}
