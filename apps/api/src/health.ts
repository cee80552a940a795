/** A part that the service stands on. */
export type HealthPart = "database" | "lock-store";

/** What {@link Health.check} has found. */
export interface HealthReport {
  /** Whether requests can be served at all. */
  readonly status: "ready" | "unavailable";
  /** Parts that are away while the service goes on without them. */
  readonly degraded: readonly HealthPart[];
  /** Parts without which it cannot go on. */
  readonly unavailable: readonly HealthPart[];
}

/** Looks after the parts that the service stands on. */
export interface Health {
  /** Asks every part, each within its own limit of time. Answers are shared for a second, so that many probes cost no more than one. */
  check(): Promise<HealthReport>;
}

/** What {@link createHealth} asks. A probe resolves when the part has answered, and rejects or is late when it has not. */
export interface HealthOptions {
  readonly probeDatabase: () => Promise<unknown>;
  readonly probeLockStore: () => Promise<unknown>;
  /** Whether the service goes on without its lock store. */
  readonly lockOutage: "proceed" | "busy";
  /**
   * How long a probe may take.
   * @default 2000
   */
  readonly probeTimeoutMs?: number;
  /**
   * How long an answer is used again.
   * @default 1000
   */
  readonly reuseMs?: number;
}

/** Health by asking: a part is well when it answers now, whatever it did before. */
export function createHealth(options: HealthOptions): Health {
  const { probeTimeoutMs = 2000, reuseMs = 1000 } = options;
  let latest: { readonly report: Promise<HealthReport>; readonly atMs: number } | undefined;

  async function ask(): Promise<HealthReport> {
    const [database, lockStore] = await Promise.all([
      answers(options.probeDatabase, probeTimeoutMs),
      answers(options.probeLockStore, probeTimeoutMs),
    ]);
    const unavailable: HealthPart[] = [];
    const degraded: HealthPart[] = [];
    if (!database) unavailable.push("database");
    if (!lockStore) (options.lockOutage === "busy" ? unavailable : degraded).push("lock-store");
    return { status: unavailable.length === 0 ? "ready" : "unavailable", degraded, unavailable };
  }

  return {
    check() {
      const nowMs = performance.now();
      if (latest === undefined || nowMs - latest.atMs >= reuseMs) latest = { report: ask(), atMs: nowMs };
      return latest.report;
    },
  };
}

async function answers(probe: () => Promise<unknown>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs);
  });
  const answered = (async () => probe())().then(
    () => true,
    () => false,
  );
  try {
    return await Promise.race([answered, late]);
  } finally {
    clearTimeout(timer);
  }
}
