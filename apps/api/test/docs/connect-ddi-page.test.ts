import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasPostgres } from "@ota/testkit";
import { expect, test } from "vitest";
import { fileOfPage, runScriptOfPage } from "../ddi-clients/operators-page.ts";
import { startApi, type TestApi } from "../support/start-api.ts";

/** More than hawkBit gives in a page. */
const TARGETS = Array.from({ length: 501 }, (_, index) => ({
  controllerId: `hub-${String(index).padStart(4, "0")}`,
  securityToken: `${index}`.padStart(32, "0123456789abcdef"),
}));

const USER = `Basic ${Buffer.from("admin:secret").toString("base64")}`;

// What SWUpdate does by the page is tested with SWUpdate itself, in test/ddi-clients.
test.skipIf(!hasPostgres)("what moves devices from hawkBit brings every one of them with its token", async () => {
  const api = await startApi();
  const hawkBit = await startHawkBit(TARGETS);
  const folder = await mkdtemp(join(tmpdir(), "ota-page-"));
  try {
    const env = { ...envOf(api, hawkBit), DEVICES_PER_FILE: "400" };
    await writeFile(join(folder, "export-hawkbit.mjs"), fileOfPage("export-hawkbit.mjs"));
    await runScriptOfPage("product.sh", { cwd: folder, env });
    await runScriptOfPage("move.sh", { cwd: folder, env });
    // Nobody is left to be registered.
    await runScriptOfPage("move.sh", { cwd: folder, env });

    for (const { controllerId, securityToken } of [TARGETS[0], TARGETS[499], TARGETS[500]].filter((of) => !!of)) {
      const authorization = `TargetToken ${securityToken}`;
      const base = `${api.url}/DEFAULT/controller/v1/${controllerId}`;
      expect((await fetch(base, { headers: { authorization } })).status).toBe(200);
    }
    const { items } = (await api.operator("GET", "/v1/devices?product=hub&serial=hub-0500")).body;
    expect(items).toMatchObject([{ serial: "hub-0500", attributes: { board: "rev-b", VIN: "JH4TB2H26CC000000" } }]);
    // What holds tokens is gone.
    const files = ["export-hawkbit.mjs", "registered-targets-0.ndjson", "registered-targets-1.ndjson"];
    expect((await readdir(folder)).sort()).toEqual(files);
  } finally {
    await hawkBit.close();
    await api.close();
    await rm(folder, { recursive: true, force: true });
  }
});

test.skipIf(!hasPostgres)(
  "a target that cannot be moved ends it and is named by its line, and nobody is registered",
  async () => {
    const api = await startApi();
    const hawkBit = await startHawkBit([...TARGETS.slice(0, 2), { controllerId: "hub#1", securityToken: "short" }]);
    const folder = await mkdtemp(join(tmpdir(), "ota-page-"));
    try {
      const env = envOf(api, hawkBit);
      await writeFile(join(folder, "export-hawkbit.mjs"), fileOfPage("export-hawkbit.mjs"));
      await runScriptOfPage("product.sh", { cwd: folder, env });
      await expect(runScriptOfPage("move.sh", { cwd: folder, env })).rejects.toThrow("422");
      const answer = JSON.parse(await readFile(join(folder, "registered-targets-0.ndjson"), "utf8"));
      expect(answer).toMatchObject({ code: "LINES_INVALID" });
      expect(JSON.stringify(answer)).toContain('"line":3');
      expect((await api.operator("GET", "/v1/devices?product=hub")).body.items).toEqual([]);
    } finally {
      await hawkBit.close();
      await api.close();
      await rm(folder, { recursive: true, force: true });
    }
  },
);

/** What the page's scripts need. */
function envOf(api: TestApi, { url }: HawkBit): Readonly<Record<string, string>> {
  return {
    ...{ OTA_URL: api.url, OTA_OPERATOR_KEY: api.operatorKey, PRODUCT: "hub" },
    ...{ HAWKBIT_URL: url, HAWKBIT_USER: "admin", HAWKBIT_PASSWORD: "secret" },
  };
}

interface HawkBit {
  readonly url: string;
  close(): Promise<void>;
}

/** The two resources of hawkBit's management API that the page uses, with its paging. */
async function startHawkBit(targets: readonly { readonly controllerId: string }[]): Promise<HawkBit> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://127.0.0.1");
    const answer = (status: number, body: object): void => {
      response.writeHead(status, { "content-type": "application/hal+json" }).end(JSON.stringify(body));
    };
    if (request.headers.authorization !== USER) answer(401, {});
    else if (pathname === "/rest/v1/targets") {
      const offset = Number(searchParams.get("offset") ?? 0);
      const content = targets.slice(offset, offset + Math.min(500, Number(searchParams.get("limit") ?? 50)));
      answer(200, { content, total: targets.length, size: content.length });
    } else if (/^\/rest\/v1\/targets\/[^/]+\/attributes$/.test(pathname)) {
      answer(200, { board: "rev-b", VIN: "JH4TB2H26CC000000" });
    } else answer(404, {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
