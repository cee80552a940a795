import { expect } from "vitest";
import type { Caller } from "./start-api.ts";

/** The figures of `/metrics` by their name and labels: `ota_problems_total{code="NOT_FOUND"}`. */
export type Figures = ReadonlyMap<string, number>;

/** Reads them as a scraper does. */
export async function scrape(call: Caller): Promise<Figures> {
  const { status, bytes } = await call("GET", "/metrics");
  expect(status).toBe(200);
  return parseFigures(bytes.toString("utf8"));
}

/** Fails on a line that is not in Prometheus' text format. */
export function parseFigures(text: string): Figures {
  const figures = new Map<string, number>();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("# HELP ") || line.startsWith("# TYPE ")) continue;
    const [, name, value] = /^([a-z0-9_]+(?:\{.*\})?) (\S+)$/.exec(line) ?? [];
    expect(name, line).toBeDefined();
    figures.set(name ?? "", Number(value));
  }
  return figures;
}
