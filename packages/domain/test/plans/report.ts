import type { MigrationTimes } from "./first-schema.ts";
import type { FleetSize } from "./fleet-data.ts";
import type { WorkCost } from "./time-works.ts";
import type { Work } from "./works.ts";

/** What a check may read among the most devices, in what it reads among the fewest. */
const FLAT = 1.2;

export interface TimedWork {
  readonly work: Work;
  readonly statements: number;
  /** In the order of the sizes. */
  readonly costs: readonly WorkCost[];
  readonly problems: readonly string[];
}

/** The table of what was done, and what it has cost by size. */
export function reportText(works: readonly TimedWork[], sizes: readonly FleetSize[]): string {
  const by = sizes.map(({ devices }) => devices.toLocaleString("en")).join(" / ");
  const rows = works.map(({ work, statements, costs, problems }) => [
    ...[work.of, work.name, String(statements)],
    costs.map(({ medianMs }) => medianMs.toFixed(2)).join(" / "),
    costs.map(({ serverMs }) => serverMs?.toFixed(3) ?? "?").join(" / "),
    costs.map(({ blocks }) => blocks.toFixed(0)).join(" / "),
    // Batches of the sweeper take what there is, up to a limit: how much that is differs.
    ...(work.of === "sweeper" ? ["", ""] : [growthOf(costs, blocksOf), growthOf(costs, processorOf)].map(twoDigits)),
    problems.length === 0 ? "by index" : "SCANS",
  ]);
  const head = [
    "of",
    "work",
    "statements",
    `ms by devices: ${by}`,
    "ms of the server's processor",
    "blocks",
    "growth of blocks",
    "of the processor",
    "rows found",
  ];
  return [
    ...[head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`),
    "",
    flatness(works),
  ].join("\n");
}

export function migrationText(times: MigrationTimes, { devices, recordsPerDevice }: FleetSize): string {
  const [total, read, write] = [times.totalMs, times.readBlockedMs, times.writeBlockedMs].map((ms) =>
    (ms / 1000).toFixed(1),
  );
  return `${devices.toLocaleString("en")} devices, ${(devices * recordsPerDevice).toLocaleString("en")} records: from the first schema to the newest in ${total} s; a read waited ${read} s at the longest, a write ${write} s`;
}

/** The most devices' share of the fewest's. */
function growthOf(costs: readonly WorkCost[], of: (cost: WorkCost) => number): number {
  const [first, last] = [costs[0], costs.at(-1)];
  return first === undefined || last === undefined ? Number.NaN : of(last) / of(first);
}

const blocksOf = ({ blocks }: WorkCost): number => blocks;

/** The wall clock's time depends on who else works. */
const processorOf = ({ serverMs, medianMs }: WorkCost): number => serverMs ?? medianMs;

function twoDigits(growth: number): string {
  return Number.isFinite(growth) ? growth.toFixed(2) : "";
}

/** Blocks say it without noise. The processor's time also has what it takes to fetch blocks that are not in memory. */
function flatness(works: readonly TimedWork[]): string {
  const checks = works.filter(({ work }) => work.name.startsWith("check:"));
  if (checks.length === 0) return "No checks were timed.";
  const over = (of: (cost: WorkCost) => number) => {
    const grown = checks.filter(({ costs }) => !(growthOf(costs, of) <= FLAT));
    return grown.map(({ work, costs }) => `${work.name} (${twoDigits(growthOf(costs, of))})`).join(", ") || "none";
  };
  return [
    `Checks that read more than ${FLAT} times the blocks: ${over(blocksOf)}.`,
    `Checks that take more than ${FLAT} times the processor: ${over(processorOf)}. Devices are met at random, so most of their rows are not in PostgreSQL's memory, but for those that have asked just now.`,
  ].join("\n");
}
