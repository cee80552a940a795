import type { MigrationTimes } from "./first-schema.ts";
import type { FleetSize } from "./fleet-data.ts";
import type { WorkCost } from "./time-works.ts";
import type { Work } from "./works.ts";

/** What a check may cost among the most devices, in what it costs among the fewest. */
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
    work.of === "sweeper" ? "" : (growth(costs)?.toFixed(2) ?? "?"),
    problems.length === 0 ? "by index" : "SCANS",
  ]);
  const head = [
    "of",
    "work",
    "statements",
    `ms by devices: ${by}`,
    "ms of the server's processor",
    "blocks",
    "growth",
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

/** The processor's time among the most devices, in that among the fewest: the wall clock's depends on who else works. */
function growth(costs: readonly WorkCost[]): number | undefined {
  const [first, last] = [costs[0], costs.at(-1)].map((cost) => cost?.serverMs ?? cost?.medianMs);
  return first === undefined || last === undefined ? undefined : last / first;
}

function flatness(works: readonly TimedWork[]): string {
  const growths = works
    .filter(({ work }) => work.name.startsWith("check:"))
    .map(({ work, costs }) => ({ name: work.name, growth: growth(costs) ?? Number.NaN }));
  const over = growths.filter(({ growth }) => !(growth <= FLAT));
  if (growths.length === 0) return "No checks were timed.";
  return over.length === 0
    ? `The cost of every kind of check is flat: it grows by ${FLAT} at the most.`
    : `Not flat, over ${FLAT}: ${over.map(({ name, growth }) => `${name} (${growth.toFixed(2)})`).join(", ")}.`;
}
