import { describe, expect, test } from "vitest";
import { createHealth, type HealthOptions, type HealthReport } from "../src/health.ts";

const well = async (): Promise<void> => {};
const away = (): Promise<void> => Promise.reject(new Error("away"));
const hung = (): Promise<void> => new Promise(() => {});

function health(options: Partial<HealthOptions>) {
  return createHealth({
    ...{
      probeDatabase: well,
      probeLockStore: well,
      probeArtifacts: well,
      isOverloaded: () => false,
      isEnding: () => false,
      lockOutage: "proceed",
      probeTimeoutMs: 30,
      reuseMs: 0,
    },
    ...options,
  });
}

interface Row extends HealthReport {
  readonly title: string;
  readonly options: Partial<HealthOptions>;
}

describe("createHealth", () => {
  test.for<Row>([
    { title: "all there", options: {}, status: "ready", degraded: [], unavailable: [] },
    {
      title: "database away",
      options: { probeDatabase: away },
      status: "unavailable",
      degraded: [],
      unavailable: ["database"],
    },
    {
      title: "database hung",
      options: { probeDatabase: hung },
      status: "unavailable",
      degraded: [],
      unavailable: ["database"],
    },
    {
      title: "locks away, proceed",
      options: { probeLockStore: away },
      status: "ready",
      degraded: ["lock-store"],
      unavailable: [],
    },
    {
      title: "artifacts away",
      options: { probeArtifacts: away },
      status: "ready",
      degraded: ["artifact-store"],
      unavailable: [],
    },
    {
      title: "artifacts hung, locks away, and overloaded",
      options: { probeArtifacts: hung, probeLockStore: away, isOverloaded: () => true },
      status: "ready",
      degraded: ["lock-store", "artifact-store", "capacity"],
      unavailable: [],
    },
    {
      ...{ title: "locks hung, busy", options: { probeLockStore: hung, lockOutage: "busy" } },
      ...{ status: "unavailable", degraded: [], unavailable: ["lock-store"] },
    },
  ])("$title: $status", async ({ options, ...expected }) => {
    const { status, degraded, unavailable } = await health(options).check();
    expect({ status, degraded, unavailable }).toEqual({
      status: expected.status,
      degraded: expected.degraded,
      unavailable: expected.unavailable,
    });
  });

  test("an end that was asked for is told at once, though the parts hang and were well a moment ago", async () => {
    let isEnding = false;
    let probe = well;
    const { check } = health({ probeDatabase: () => probe(), isEnding: () => isEnding, reuseMs: 60_000 });
    expect((await check()).status).toBe("ready");
    [isEnding, probe] = [true, hung];
    expect(await check()).toEqual({ status: "ending", degraded: [], unavailable: [] });
  });

  test("many questions at once cost one probe of each part", async () => {
    let probes = 0;
    const counting = async (): Promise<void> => void probes++;
    const { check } = health({ probeDatabase: counting, reuseMs: 1000 });
    await Promise.all(Array.from({ length: 50 }, () => check()));
    await check();
    expect(probes).toBe(1);
  });
});
