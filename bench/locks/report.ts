import { arch, cpus, platform, release, totalmem } from "node:os";
import type { ContenderName } from "./contenders.ts";
import type { Contention, Throughput } from "./measures.ts";

/** All that one run has measured. */
export interface Report {
  readonly throughput: readonly {
    readonly name: ContenderName;
    readonly at: readonly { readonly concurrency: number; readonly ratio: number; readonly figures: Throughput }[];
  }[];
  readonly oneProcess: readonly ContentionRow[];
  readonly twoProcesses: readonly ContentionRow[];
  readonly bursts: readonly { readonly name: ContenderName; readonly medianMs: number }[];
  readonly heap: readonly { readonly name: ContenderName; readonly bytes: number }[];
}

interface ContentionRow {
  readonly name: ContenderName;
  /** Turns a second, as a ratio to the floor of the same round. */
  readonly timesFloor: number;
  readonly figures: Contention;
}

/** The tables as Markdown, with the machine that they were measured on. */
export function reportText(report: Report, { rounds }: { readonly rounds: number }): string {
  const floorAt = new Map(
    report.throughput.find(({ name }) => name === "floor")?.at.map((one) => [one.concurrency, one.figures]),
  );
  const concurrencies = [...floorAt.keys()];
  const against = (concurrency: number, value: (figures: Throughput) => number, figures: Throughput): string => {
    const floor = floorAt.get(concurrency);
    return floor === undefined ? "–" : (value(figures) / value(floor)).toFixed(2);
  };
  return [
    "# The locks beside their floors and peers",
    "",
    `${cpus().length} × ${cpus()[0]?.model ?? "unknown processor"}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${platform()} ${release()} ${arch()}, ` +
      `Node ${process.versions.node}; redis-server, client and all on this machine. Medians of ${rounds} interleaved rounds.`,
    "",
    "## Acquire and release, each pair on a key of its own: throughput and CPU per pair as ratios to the floor",
    "",
    table(
      [
        "",
        ...concurrencies.map((concurrency) => `concurrency ${concurrency}`),
        ...concurrencies.map((concurrency) => `client CPU, ${concurrency}`),
        ...concurrencies.map((concurrency) => `Redis CPU, ${concurrency}`),
        "commands per pair",
      ],
      report.throughput.map(({ name, at }) => {
        const [first] = at;
        return [
          name,
          ...at.map(({ ratio }) => ratio.toFixed(2)),
          ...at.map(({ concurrency, figures }) => against(concurrency, ({ cpuUsPerPair }) => cpuUsPerPair, figures)),
          ...at.map(({ concurrency, figures }) =>
            against(concurrency, ({ redisCpuUsPerPair }) => redisCpuUsPerPair, figures),
          ),
          first === undefined || first.figures.commandsPerPair === 0 ? "–" : first.figures.commandsPerPair.toFixed(1),
        ];
      }),
    ),
    "",
    `The floor made ${concurrencies.map((concurrency) => Math.round(floorAt.get(concurrency)?.pairsPerSecond ?? 0)).join(" / ")} pairs a second.`,
    "",
    "## 32 waiters in one process, each holding one key for 1 ms again and again",
    "",
    contentionTable(report.oneProcess),
    "",
    "Throughput is a ratio to the floor of the same round, which asks again every 10 ms while the key is held.",
    "",
    "## 16 waiters in each of two processes",
    "",
    contentionTable(report.twoProcesses),
    "",
    "## 32 arrive at once, each takes the key once for 1 ms",
    "",
    table(
      ["", "all served after"],
      report.bursts.map(({ name, medianMs }) => [name, `${medianMs.toFixed(0)} ms`]),
    ),
    "",
    "## Client heap for each held lock",
    "",
    table(
      ["", "bytes"],
      report.heap.map(({ name, bytes }) => [name, bytes.toFixed(0)]),
    ),
    "",
  ].join("\n");
}

function contentionTable(rows: readonly ContentionRow[]): string {
  return table(
    [
      "",
      "throughput",
      "starved",
      "Jain fairness",
      "wait p99",
      "commands per turn",
      "hand-off p50",
      "handed on",
      "turns per second",
    ],
    rows.map(({ name, timesFloor, figures }) => [
      name,
      timesFloor.toFixed(2),
      String(figures.starved),
      figures.jain.toFixed(3),
      `${figures.waitP99Ms.toFixed(0)} ms`,
      figures.commandsPerTurn.toFixed(2),
      `${figures.handOffP50Ms.toFixed(2)} ms`,
      `${(figures.handedOn * 100).toFixed(0)} %`,
      figures.turnsPerSecond.toFixed(0),
    ]),
  );
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(header), line(header.map(() => "---")), ...rows.map(line)].join("\n");
}
