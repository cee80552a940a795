import { FLOOR, OURS } from "./contenders.ts";
import { median } from "./measures.ts";
import type { Report } from "./report.ts";

/** What is to be reached, beside what was. Rows of a table. */
export function targetRows(report: Report): readonly (readonly [string, string])[] {
  return [
    ...report.labels.flatMap((label) => [...loadRows(report, label), ...memoryRows(report, label)]),
    ...sizeRows(report),
  ];
}

function loadRows({ standings }: Report, label: string): (readonly [string, string])[] {
  const rows: (readonly [string, string])[] = [];
  const of = (load: keyof typeof OURS) => standings.find(({ name }) => name === `${label}: ${OURS[load]}`);
  const steady = of("steady")?.ratioTo(FLOOR.check);
  if (steady !== undefined) {
    rows.push([`${label}: steady check ≥ 0.9 × "${FLOOR.check}"`, verdict(steady >= 0.9, steady.toFixed(2))]);
    rows.push([`${label}: the same, stretch: ≥ 2 ×`, verdict(steady >= 2, steady.toFixed(2))]);
  }
  const create = of("create")?.ratioTo(FLOOR.create);
  if (create !== undefined) {
    rows.push([`${label}: check that creates ≥ 0.9 × "${FLOOR.create}"`, verdict(create >= 0.9, create.toFixed(2))]);
  }
  const hot = of("hot")?.figureRatioTo(FLOOR.hot, "p99Ms");
  if (hot !== undefined) {
    rows.push([`${label}: p99 of 64 on one device ≤ 1.5 × "ON CONFLICT only"`, verdict(hot <= 1.5, hot.toFixed(2))]);
  }
  return rows;
}

/** Garbage is collected when V8 likes: what a process grows by shows when the halves of a long load are compared. */
function memoryRows({ memory }: Report, label: string): (readonly [string, string])[] {
  const figures = memory.get(label);
  if (figures === undefined) return [];
  const { samplesMib, seconds } = figures;
  const most = Math.max(...samplesMib);
  const growth = median(samplesMib.slice(5)) / median(samplesMib.slice(0, 5));
  return [
    [
      `${label}: server memory at 64 connections ≤ 200 MB`,
      verdict(most * 1.048_576 <= 200, `${(most * 1.048_576).toFixed(0)} MB`),
    ],
    [
      `${label}: no growth over the load (second half ≤ 1.05 × the first)`,
      verdict(growth <= 1.05, `${growth.toFixed(2)} over ${seconds} s`),
    ],
  ];
}

function sizeRows({ sizes }: Report): (readonly [string, string])[] {
  const [smallest] = sizes;
  const largest = sizes.at(-1);
  if (smallest === undefined || largest === undefined || smallest === largest) return [];
  const ratio = largest.standing.figureRatioTo(String(smallest.devices), "cpuUs");
  return [
    [
      `ours: CPU per check from ${smallest.devices} to ${largest.devices} devices ≤ 1.2`,
      verdict(ratio <= 1.2, ratio.toFixed(2)),
    ],
  ];
}

function verdict(met: boolean, figure: string): string {
  return `${met ? "met" : "missed"}: ${figure}`;
}
