import type { CheckOutcome } from "./storm.ts";

/** What the demonstration has counted: the answers as devices got them, the records as the service lists them. */
export interface Counted {
  readonly outcomes: readonly CheckOutcome[];
  /** How many devices there are. */
  readonly devices: number;
  /** The device of each upgrade record of the firmware, and the number of its newest attempt. */
  readonly records: readonly {
    readonly deviceId: string;
    readonly attemptId: number;
    readonly attemptNumber: number;
  }[];
}

/** One line of the table; `expected` where the service guarantees the figure. */
export interface Figure {
  readonly name: string;
  readonly value: number | string;
  readonly expected?: number;
}

/** The figures of a storm, in the order of the table. */
export function figuresOf({ outcomes, devices, records }: Counted): Figure[] {
  const byKind = Map.groupBy(outcomes, ({ kind }) => kind);
  const others = [...byKind].filter(([kind]) => !["update", "none", "SERVICE_BUSY"].includes(kind));
  const recorded = new Map(records.map(({ deviceId, attemptId }) => [deviceId, attemptId]));
  const strays = outcomes.filter(
    ({ device, attemptId, kind }) => kind === "update" && attemptId !== recorded.get(device.id),
  );
  const durations = outcomes.map(({ durationMs }) => durationMs).sort((one, other) => one - other);
  const count = (kind: string) => byKind.get(kind)?.length ?? 0;
  return [
    { name: "checks", value: outcomes.length },
    { name: "answered: update", value: count("update"), expected: outcomes.length },
    { name: "answered: none", value: count("none"), expected: 0 },
    { name: "answered: SERVICE_BUSY", value: count("SERVICE_BUSY"), expected: 0 },
    ...others.map(([kind, { length }]) => ({ name: `answered: ${kind}`, value: length, expected: 0 })),
    { name: "upgrade records", value: records.length, expected: devices },
    { name: "duplicates", value: records.length - recorded.size + reopened(records), expected: 0 },
    { name: "answers that name another attempt", value: strays.length, expected: 0 },
    { name: "p50 of a check in the crowd", value: milliseconds(percentile(durations, 50)) },
    { name: "p99 of a check in the crowd", value: milliseconds(percentile(durations, 99)) },
  ];
}

/** Whether a figure is what the service guarantees. */
export function isRight({ value, expected }: Figure): boolean {
  return expected === undefined || value === expected;
}

/** The table as text, one figure a line. */
export function table(figures: readonly Figure[]): string {
  const width = Math.max(...figures.map(({ name }) => name.length));
  return figures
    .map((figure) => {
      const value = typeof figure.value === "number" ? figure.value.toLocaleString("en") : figure.value;
      const verdict =
        figure.expected === undefined
          ? ""
          : isRight(figure)
            ? "  as it must be"
            : `  WRONG: must be ${figure.expected}`;
      return `  ${figure.name.padEnd(width)}  ${value.padStart(9)}${verdict}`;
    })
    .join("\n");
}

/** The smallest of the sorted values that `percent` of them do not exceed. */
export function percentile(sorted: readonly number[], percent: number): number {
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? 0;
}

/** A record whose newest attempt is not its first one was opened twice within the storm. */
function reopened(records: Counted["records"]): number {
  return records.filter(({ attemptNumber }) => attemptNumber !== 1).length;
}

function milliseconds(value: number): string {
  return `${value.toFixed(0)} ms`;
}
