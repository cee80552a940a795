import { arch, cpus, platform, release, totalmem } from "node:os";
import { type Contender, FLOOR } from "./contenders.ts";
import { CONNECTIONS } from "./measures.ts";
import type { MemoryFigures } from "./memory.ts";
import type { RunOptions } from "./options.ts";
import type { Standing } from "./rounds.ts";
import { targetRows } from "./targets.ts";

/** All that one run has measured. */
export interface Report {
  readonly run: RunOptions;
  readonly contenders: readonly Contender[];
  /** Of the service's builds: "ours" is the first one. */
  readonly labels: readonly string[];
  readonly standings: readonly Standing[];
  readonly sizes: readonly { readonly devices: number; readonly standing: Standing }[];
  readonly memory: ReadonlyMap<string, MemoryFigures>;
}

/** The tables as Markdown, with the machine that they were measured on and the targets. */
export function reportText(report: Report): string {
  const { run, standings } = report;
  const floors = new Map(report.contenders.map(({ name, floor }) => [name, floor]));
  const node = standings.find(({ name }) => name === FLOOR.node);
  return [
    "# The API beside its floors",
    "",
    `${cpus().length} × ${cpus()[0]?.model ?? "unknown processor"}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${platform()} ${release()} ${arch()}, ` +
      `Node ${process.versions.node}; the server, PostgreSQL, redis-server and the load all on this machine. Medians of ${run.rounds} ` +
      `interleaved rounds of ${run.turnMs / 1000} s; ${CONNECTIONS} connections; ${run.devices} devices that have made their upgrades, ${run.records} upgrade ` +
      "record(s) of each device that has made its upgrades.",
    "",
    "## One process under load",
    "",
    table(
      [
        "",
        "req/s, ratio to node:http",
        "ratio to its floor",
        "p50 / p99 ms",
        "server CPU µs/req",
        "the same, ratio to its floor",
        "PostgreSQL CPU µs/req",
        "RSS MiB",
        "refused",
      ],
      standings.map((standing) => {
        const { name, turn } = standing;
        const floor = floors.get(name);
        return [
          name,
          standing.ratioTo(FLOOR.node).toFixed(3),
          floor === undefined ? "–" : standing.ratioTo(floor).toFixed(2),
          `${turn.p50Ms.toFixed(1)} / ${turn.p99Ms.toFixed(1)}`,
          turn.serverCpuUs.toFixed(0),
          floor === undefined ? "–" : standing.figureRatioTo(floor, "serverCpuUs").toFixed(2),
          turn.postgresCpuUs.toFixed(0),
          turn.rssMib.toFixed(0),
          turn.refused.toFixed(0),
        ];
      }),
    ),
    "",
    `${FLOOR.node} answered ${Math.round(node?.turn.perSecond ?? Number.NaN)} requests a second.`,
    "",
    ...section("A steady check by the size of the fleet", report.sizes.length, () => sizesTable(report)),
    ...section("The service's memory, as `pnpm start` runs it", report.memory.size, () => memoryTable(report.memory)),
    "## Beside the targets",
    "",
    table(["target", "this run"], targetRows(report)),
    "",
  ].join("\n");
}

/** Nothing where nothing was measured. */
function section(title: string, count: number, body: () => string): readonly string[] {
  return count === 0 ? [] : [`## ${title}`, "", body(), ""];
}

function sizesTable({ sizes, run }: Report): string {
  const smallest = String(sizes[0]?.devices);
  return table(
    [
      "devices",
      "upgrade records",
      "req/s, ratio to the smallest",
      "server CPU µs/check",
      "PostgreSQL CPU µs/check",
      "CPU of both, ratio",
    ],
    sizes.map(({ devices, standing }) => [
      String(devices),
      String(devices * run.records),
      standing.ratioTo(smallest).toFixed(2),
      standing.turn.serverCpuUs.toFixed(0),
      standing.turn.postgresCpuUs.toFixed(0),
      standing.figureRatioTo(smallest, "cpuUs").toFixed(2),
    ]),
  );
}

function memoryTable(memory: Report["memory"]): string {
  return table(
    ["", "idle MiB", `at ${CONNECTIONS} connections, MiB, each tenth of the load`, "load s"],
    [...memory].map(([label, { idleMib, samplesMib, seconds }]) => [
      label,
      idleMib.toFixed(0),
      samplesMib.map((mib) => mib.toFixed(0)).join(" "),
      String(seconds),
    ]),
  );
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(header), line(header.map(() => "---")), ...rows.map(line)].join("\n");
}
