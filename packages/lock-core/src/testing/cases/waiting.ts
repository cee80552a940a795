import assert from "node:assert/strict";
import { hasWaitQueue, type WaiterRequest, type WaitPlace, type WaitQueueStore } from "../../wait-queue.ts";
import type { CaseContext, CaseDefinition } from "../contract-case.ts";
import { freshOwner, grant } from "./asking.ts";

/** How long a store may take until it can tell a place of its turn. Until then the place finds out by asking. */
const LISTENING_MS = 300;

/** How long anybody may have to wait for a place that does not use its turn. */
const SILENT_TURN_MS = 250;

/** The order of those who wait, and how they get to know of their turn: rule 30. */
export const waitingCases: readonly CaseDefinition[] = aboutWaiting([
  {
    id: "release-tells-the-waiter",
    rule: 30,
    title: "a place in line is told when the key is released, and gets it then",
    async check({ a, b, longTtlMs: ttlMs, elapse }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs });
      const waiter = await standInLine(b, { key: holder.key, ttlMs, waitedMs: 10, elapse });
      assert.equal(await a.release(holder), "released");
      for (let waited = 0; !waiter.told() && waited < 2_000; waited += 20) await elapse(20);
      assert.ok(waiter.told(), "the place was not told of its turn");
      assert.equal((await waiter.ask()).outcome, "granted");
      await b.release(waiter.request);
    },
  },
  {
    id: "longest-waiter-comes-first",
    rule: 30,
    title: "a released key goes to the place that has waited longest, whichever came last",
    async check({ a, b, longTtlMs: ttlMs, elapse }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs });
      const shorter = await standInLine(a, { key: holder.key, ttlMs, waitedMs: 2_000, elapse });
      const longer = await standInLine(b, { key: holder.key, ttlMs, waitedMs: 60_000, elapse });
      await a.release(holder);
      assert.equal((await shorter.ask()).outcome, "contended");
      assert.equal((await longer.ask()).outcome, "granted");
      await b.release(longer.request);
      assert.equal((await shorter.ask()).outcome, "granted");
      await a.release(shorter.request);
    },
  },
  {
    id: "newcomer-does-not-pass-the-line",
    rule: 30,
    title: "a place that comes later does not pass those in line; the key itself is free for a plain acquire",
    async check({ a, b, longTtlMs: ttlMs, elapse }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs });
      const waiter = await standInLine(b, { key: holder.key, ttlMs, waitedMs: 5_000, elapse });
      await a.release(holder);
      const newcomer = placeOf(a, { key: holder.key, ttlMs, waitedMs: 0 });
      assert.equal((await newcomer.ask()).outcome, "contended");
      const passing = freshOwner(holder.key);
      await grant(a, { ...passing, ttlMs });
      assert.equal((await waiter.ask()).outcome, "contended");
      await a.release(passing);
      assert.equal((await waiter.ask()).outcome, "granted");
      await newcomer.place.leave();
      await b.release(waiter.request);
    },
  },
  {
    id: "waiting-leaves-the-lock-alone",
    rule: 30,
    title: "a place in line changes nothing where the lock is kept",
    needs: ["contents"],
    async check({ a, b, backend, longTtlMs: ttlMs, elapse }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs });
      const before = await backend.contents(holder.key);
      const waiter = await standInLine(b, { key: holder.key, ttlMs, waitedMs: 10, elapse });
      assert.deepEqual(await backend.contents(holder.key), before);
      await waiter.place.leave();
      await a.release(holder);
    },
  },
  {
    id: "release-puts-the-next-in-line",
    rule: 30,
    title:
      "a place that releases for a waiter of its own has the turn when nobody else waits, and its place when others do",
    async check({ a, b, longTtlMs: ttlMs, elapse }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs });
      const own = placeOf(a, { key: holder.key, ttlMs, waitedMs: 10 });
      const alone = await own.place.release({ ...holder, next: own.request });
      assert.equal(alone.outcome, "released");
      assert.ok(alone.next === "turn" || typeof alone.next === "object", "nobody else waits, and it has not the turn");
      assert.equal((await own.ask()).outcome, "granted");

      const longer = await standInLine(b, { key: holder.key, ttlMs, waitedMs: 60_000, elapse });
      const next = placeOf(a, { key: holder.key, ttlMs, waitedMs: 5_000 });
      const { next: became } = await next.place.release({ ...own.request, next: next.request });
      if (typeof became === "object") return void (await a.release(next.request));
      assert.equal(became, "waits");
      assert.equal((await longer.ask()).outcome, "granted");
      await b.release(longer.request);
      assert.equal((await placeOf(b, { key: holder.key, ttlMs, waitedMs: 0 }).ask()).outcome, "contended");
    },
  },
  {
    id: "left-place-is-forgotten",
    rule: 30,
    title: "a place that left, before its turn or in it, holds nobody up",
    async check({ a, b, longTtlMs: ttlMs, elapse }) {
      for (const leavesInTurn of [false, true]) {
        const holder = freshOwner();
        await grant(a, { ...holder, ttlMs });
        const leaver = await standInLine(b, { key: holder.key, ttlMs, waitedMs: 5_000, elapse });
        if (!leavesInTurn) await leaver.place.leave();
        await a.release(holder);
        if (leavesInTurn) await leaver.place.leave();
        const next = placeOf(a, { key: holder.key, ttlMs, waitedMs: 0 });
        assert.equal((await next.ask()).outcome, "granted");
        await a.release(next.request);
      }
    },
  },
  {
    id: "silent-place-costs-little",
    rule: 30,
    title: "a place that does not use its turn holds the others up for 250 ms at most",
    async check({ a, b, longTtlMs: ttlMs, elapse }) {
      const holder = freshOwner();
      await grant(a, { ...holder, ttlMs });
      await standInLine(b, { key: holder.key, ttlMs, waitedMs: 60_000, elapse });
      const next = await standInLine(a, { key: holder.key, ttlMs, waitedMs: 5_000, elapse });
      await a.release(holder);
      await elapse(SILENT_TURN_MS);
      assert.equal((await next.ask()).outcome, "granted");
      await a.release(next.request);
    },
  },
]);

type WaitingCase = Omit<CaseDefinition, "check"> & {
  check(context: CaseContext & { readonly a: WaitQueueStore; readonly b: WaitQueueStore }): Promise<void>;
};

function aboutWaiting(cases: readonly WaitingCase[]): readonly CaseDefinition[] {
  return cases.map(({ check, ...definition }) => ({
    ...definition,
    claims: ["waiting"],
    async check({ a, b, ...context }) {
      assert.ok(hasWaitQueue(a) && hasWaitQueue(b), "the stores claim waiting, and have not its methods");
      await check({ ...context, a, b });
    },
  }));
}

interface Asked {
  readonly key: string;
  readonly ttlMs: number;
  readonly waitedMs: number;
}

interface Standing {
  readonly place: WaitPlace;
  readonly request: WaiterRequest;
  /** Whether it was told of its turn since it asked last. */
  told(): boolean;
  ask(): ReturnType<WaitPlace["acquire"]>;
}

function placeOf(store: WaitQueueStore, { key, ...asked }: Asked): Standing {
  let told = false;
  const onTurn = (): void => {
    told = true;
  };
  const place = store.openPlace({ key, onTurn });
  const request = { ...freshOwner(key), ...asked };
  return {
    place,
    request,
    told: () => told,
    ask: () => {
      told = false;
      return place.acquire(request);
    },
  };
}

/** A place that was refused, and could be told of its turn by now. */
async function standInLine(
  store: WaitQueueStore,
  { elapse, ...asked }: Asked & Pick<CaseContext, "elapse">,
): Promise<Standing> {
  const standing = placeOf(store, asked);
  assert.equal((await standing.ask()).outcome, "contended");
  await elapse(LISTENING_MS);
  assert.equal((await standing.ask()).outcome, "contended");
  return standing;
}
