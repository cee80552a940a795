/** What the service stands on: its parts, and the capacity to do what it is asked. */
export const HEALTH_PARTS = ["database", "lock-store", "artifact-store", "capacity"] as const;
export type HealthPart = (typeof HEALTH_PARTS)[number];

/** What {@link Health.check} has found. */
export interface HealthReport {
  /** Whether requests can be served at all; `ending`: for the moment, but send no more. */
  readonly status: "ready" | "unavailable" | "ending";
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
  /** Checks and reports go on without it; downloads and uploads do not. */
  readonly probeArtifacts: () => Promise<unknown>;
  /** Whether checks are turned away, since there is more to do than can be done. */
  readonly isOverloaded: () => boolean;
  /** Whether the service was told to end. */
  readonly isEnding: () => boolean;
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
    const [database, lockStore, artifacts] = await Promise.all([
      answers(options.probeDatabase, probeTimeoutMs),
      answers(options.probeLockStore, probeTimeoutMs),
      answers(options.probeArtifacts, probeTimeoutMs),
    ]);
    const unavailable: HealthPart[] = [];
    const degraded: HealthPart[] = [];
    if (!database) unavailable.push("database");
    if (!lockStore) (options.lockOutage === "busy" ? unavailable : degraded).push("lock-store");
    if (!artifacts) degraded.push("artifact-store");
    if (options.isOverloaded()) degraded.push("capacity");
    return { status: unavailable.length === 0 ? "ready" : "unavailable", degraded, unavailable };
  }

  return {
    async check() {
      // At once, and whatever the parts would say: who asks is waiting to send requests elsewhere.
      if (options.isEnding()) return { status: "ending", degraded: [], unavailable: [] };
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
