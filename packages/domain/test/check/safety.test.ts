import type { Database, UpdateAnswer } from "@ota/domain";
import { LockFactory, type LockStore, MemoryState, MemoryStore } from "@ota/lock-core";
import { hasPostgres, withoutRowLocks } from "@ota/testkit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createFleet, overMemory, quietLogger, startChecks } from "../support/fleet.ts";
import {
  DROP_UNIQUE,
  decidedAgain,
  openPostgresClient,
  type PostgresTestDatabase,
} from "../support/postgres-client.ts";

const PROCESSES = 8;
const CHECKS_EACH = 25;

/** Opens once all processes have come to the same point: nobody inserts before, so that the race is certain. */
class Gate {
  #arrived = 0;
  readonly #opened = Promise.withResolvers<void>();

  arrive(): void {
    this.#arrived += 1;
    if (this.#arrived === PROCESSES) this.#opened.resolve();
  }

  get opened(): Promise<void> {
    return this.#opened.promise;
  }
}

/** Grants everything to everybody. */
const alwaysGranting = overMemory({
  acquire: async () => ({ outcome: "granted" }),
  release: async () => "released",
});

/** A process's view of a shared memory, which tells the gate when it is asked for the first time. */
function telling(state: MemoryState, gate: Gate): LockStore {
  const memory = new MemoryStore({ state });
  let told = false;
  return overMemory(
    {
      acquire(request) {
        if (!told) gate.arrive();
        told = true;
        return memory.acquire(request);
      },
    },
    state,
  );
}

const INSERT = /insert into upgrades /;
const AT_ONCE = / skip locked/;
const ROW_LOCK = / for update$/;

/** Long enough for every process's turn on a slow machine: here contention itself is not the point. */
const patient = { lockMaxAttempts: 500, lockRetryIntervalMs: 10 };

describe.skipIf(!hasPostgres)("one record per device and firmware", () => {
  let database: PostgresTestDatabase;
  beforeEach(async () => {
    database = await openPostgresClient();
  });
  afterEach(() => database.close());

  /** Lets 8 processes of 25 checks each check for one device at once. Each has its own single-flight. */
  async function race(db: Database, storeOfProcess: () => LockStore) {
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0");
    const { tokenHash } = await fleet.device();
    const processes = Array.from({ length: PROCESSES }, () => {
      return startChecks(db, { locks: new LockFactory(storeOfProcess(), { logger: quietLogger }), settings: patient });
    });
    const checks = processes.flatMap((one) =>
      Array.from({ length: CHECKS_EACH }, () => one.checkForUpdate({ tokenHash })),
    );
    const answers = (await Promise.all(checks)) as UpdateAnswer[];
    const events = processes.flatMap((one) => one.events);
    const count = (kind: string) => events.filter((event) => event.kind === kind).length;
    return {
      answers,
      attempts: new Set(answers.map(({ attempt }) => attempt.id)).size,
      created: count("created"),
      conflictsLost: count("conflict_lost"),
      upgradeRows: await rows("upgrades"),
      attemptRows: await rows("upgrade_attempts"),
    };
  }

  async function rows(table: string): Promise<number> {
    const [row] = await database.query(`select count(*)::int as rows from ${table}`);
    return row?.["rows"] as number;
  }

  function sharedMemory(gate?: Gate): () => LockStore {
    const state = new MemoryState();
    return () => (gate === undefined ? new MemoryStore({ state }) : telling(state, gate));
  }

  const ONE = { attempts: 1, created: 1, upgradeRows: 1, attemptRows: 1 };

  it("200 parallel checks of 8 processes make one record with one attempt, and all answer it", async () => {
    const { answers, ...outcome } = await race(database.db, sharedMemory());
    expect(answers).toHaveLength(200);
    expect(answers.filter(({ how }) => how === "created")).toHaveLength(1);
    expect(outcome).toEqual({ ...ONE, conflictsLost: 0 });
    expect(await rows("attempt_events")).toBe(1);
  });

  it("two devices get a record each, side by side", async () => {
    const fleet = await createFleet(database.db);
    await fleet.release("1.0.0");
    const devices = [await fleet.device(), await fleet.device()];
    const checks = startChecks(database.db);
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        checks.checkForUpdate({ tokenHash: devices[index % 2]?.tokenHash as Buffer }),
      ),
    );
    const pairs = new Set(answers.map((answer) => `${answer.device.id} ${(answer as UpdateAnswer).attempt.id}`));
    expect(pairs.size).toBe(2);
    expect([await rows("upgrades"), await rows("upgrade_attempts")]).toEqual([2, 2]);
  });

  it("the lock alone is enough: without constraints and row locks there is still one", async () => {
    await database.query(DROP_UNIQUE);
    const gate = new Gate();
    const db = database.hooked({
      ...withoutRowLocks,
      before: async (text) => (INSERT.test(text) ? gate.opened : undefined),
    });
    expect(await race(db, sharedMemory(gate))).toMatchObject({ ...ONE, conflictsLost: 0 });
  });

  it("the row lock alone is enough: without constraints and lock there is still one", async () => {
    await database.query(DROP_UNIQUE);
    const gate = new Gate();
    const db = database.hooked({
      rewrite: decidedAgain,
      before: async (text) => {
        if (ROW_LOCK.test(text)) gate.arrive();
        if (INSERT.test(text) && !AT_ONCE.test(text)) await gate.opened;
      },
    });
    expect(await race(db, () => alwaysGranting)).toMatchObject({ ...ONE, conflictsLost: 0 });
  });

  /** All processes come to the statement that opens at once, and only then is the first one sent. */
  function togetherAtOnce(rewrite: (text: string) => string): Database {
    const gate = new Gate();
    return database.hooked({
      rewrite,
      before: async (text) => {
        if (!AT_ONCE.test(text)) return;
        gate.arrive();
        await gate.opened;
      },
    });
  }

  it("so is the row lock of those that open at once", async () => {
    await database.query(DROP_UNIQUE);
    const db = togetherAtOnce((text) => text);
    expect(await race(db, () => alwaysGranting)).toMatchObject({ ...ONE, conflictsLost: 0 });
  });

  it("and the constraints alone, with nothing else between those that open at once", async () => {
    expect(await race(togetherAtOnce(careless), () => alwaysGranting)).toMatchObject(ONE);
    expect(await rows("attempt_events")).toBe(1);
  });

  it("with both taken away these make several: the two tests above can fail", async () => {
    await database.query(DROP_UNIQUE);
    const outcome = await race(togetherAtOnce(careless), () => alwaysGranting);
    expect(outcome.upgradeRows).toBeGreaterThanOrEqual(PROCESSES);
  });

  /** Nobody is kept from inserting by anything but the constraints. */
  function unlocked(gate: Gate): Database {
    return database.hooked({
      rewrite: (text) => decidedAgain(withoutRowLocks.rewrite?.(text) ?? text),
      before: async (text) => {
        if (!INSERT.test(text) || AT_ONCE.test(text)) return;
        gate.arrive();
        await gate.opened;
      },
    });
  }

  it("the constraints alone are enough: whoever loses rolls back, reads again and answers like the winner", async () => {
    const outcome = await race(unlocked(new Gate()), () => alwaysGranting);
    expect(outcome).toMatchObject({ ...ONE, conflictsLost: PROCESSES - 1 });
    expect(await rows("attempt_events")).toBe(1);
  });

  it("with all three taken away each process makes its own: the tests above can fail", async () => {
    await database.query(DROP_UNIQUE);
    const outcome = await race(unlocked(new Gate()), () => alwaysGranting);
    expect(outcome).toMatchObject({ created: PROCESSES, upgradeRows: PROCESSES, attemptRows: PROCESSES });
  });
});

/** No row lock, and nobody looks whether another was faster. */
function careless(text: string): string {
  return (withoutRowLocks.rewrite?.(text) ?? text).replace("is not distinct from history", "$& or true");
}
