import type { Belief } from "./belief.ts";

/**
 * Every contradiction in what the holders of all processes believed: an exclusive lease beside any other of its key, and
 * fencing tokens of exclusive leases that do not grow.
 */
export function contradictions(beliefs: readonly Belief[]): string[] {
  return [...Map.groupBy(beliefs, ({ key }) => key).values()].flatMap((ofKey) => {
    const spans = [...Map.groupBy(ofKey, ({ lease }) => lease).values()].flatMap(spansOfLease);
    spans.sort((one, other) => one.from - other.from);
    return [...overlaps(spans), ...tokensThatDoNotGrow(spans)];
  });
}

interface Span {
  readonly belief: Belief;
  readonly from: number;
  readonly to: number;
}

/** Each belief ends with the next one of its lease, if not before. */
function spansOfLease(beliefs: readonly Belief[]): Span[] {
  const inOrder = [...beliefs].sort((one, other) => one.at - other.at);
  return inOrder
    .map((belief, index) => ({
      belief,
      from: belief.at,
      to: Math.min(belief.until, inOrder[index + 1]?.at ?? Number.POSITIVE_INFINITY),
    }))
    .filter(({ from, to }) => to > from);
}

function overlaps(spans: readonly Span[]): string[] {
  const found: string[] = [];
  let open: Span[] = [];
  for (const span of spans) {
    open = open.filter(({ to }) => to > span.from);
    for (const earlier of open) {
      if (earlier.belief.lease === span.belief.lease) continue;
      if (earlier.belief.mode === "shared" && span.belief.mode === "shared") continue;
      const together = Math.min(earlier.to, span.to) - span.from;
      found.push(
        `${span.belief.key}: ${show(earlier)} and ${show(span)} were held together for ${together.toFixed(3)} ms`,
      );
    }
    open.push(span);
  }
  return found;
}

function tokensThatDoNotGrow(spans: readonly Span[]): string[] {
  const found: string[] = [];
  let latest: Span | undefined;
  for (const span of spans) {
    if (span.belief.mode !== "exclusive") continue;
    const [token, before] = [BigInt(span.belief.token), BigInt(latest?.belief.token ?? "0")];
    const same = latest?.belief.lease === span.belief.lease;
    if (same ? token < before : token <= before) {
      found.push(`${span.belief.key}: token ${token} of ${span.belief.lease} came after ${before}`);
    }
    latest = span;
  }
  return found;
}

function show({ belief, from, to }: Span): string {
  return `${belief.mode} ${belief.lease} (${from.toFixed(3)} to ${to.toFixed(3)})`;
}
