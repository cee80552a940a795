import { sql } from "drizzle-orm";
import { recordTransition } from "../attempts/record-transition.ts";
import { nextState } from "../attempts/transitions.ts";
import type { Database } from "../database.ts";
import { isNewcomer } from "../decide/candidates.ts";
import type { Catalog } from "../decide/catalog.ts";
import { decideUpdate, type EndOfAttempt } from "../decide/decide-update.ts";
import type { LiveAttempt, RolloutFacts, RolloutPlaces } from "../decide/facts.ts";
import { ServiceBusyError } from "../errors.ts";
import { fixedStatement } from "../fixed-statement.ts";
import { lockCounters, takePlace } from "../rollouts/places.ts";
import type { AttemptState } from "../vocabulary.ts";
import { type CheckAnswer, noneAnswer, updateAnswer } from "./answer.ts";
import type { CatalogCache } from "./catalog-cache.ts";
import { type DeviceState, loadDeviceState } from "./device-state.ts";
import type { CheckObserver } from "./events.ts";
import { openAttempt } from "./open-attempt.ts";

/** Each round is lost to somebody who has succeeded; so many in a row mean that something else is wrong. */
const MAX_ROUNDS = 5;

export interface SettleContext {
  readonly db: Database;
  readonly catalogs: CatalogCache;
  readonly observe: CheckObserver;
}

/**
 * The critical section of a check: under the lock of the device's row everything is read again, decided again and
 * written, in one transaction. Whoever loses to another process all the same (who holds neither that lock nor ours) rolls
 * back, reads again, and answers like the winner.
 */
export async function settleCheck({ db, catalogs, observe }: SettleContext, deviceId: bigint): Promise<CheckAnswer> {
  const full: RolloutFacts[] = [];
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const ended: AttemptState[] = [];
    try {
      const answer = await db.transaction(async (tx) => settleOnce(tx, { deviceId, catalogs, full, ended }));
      // Told only now: what was rolled back has not happened.
      for (const to of ended) observe({ kind: "moved", to });
      return answer;
    } catch (error) {
      if (error instanceof PlaceRefused) {
        full.push(error.rollout);
        const answer = await noneInstead({ db, catalogs, full }, deviceId);
        if (answer !== undefined) return answer;
        continue;
      }
      if (!(error instanceof RaceLost)) throw error;
      observe({ kind: "conflict_lost" });
    }
  }
  throw new ServiceBusyError("This device's upgrade is being changed by others. Ask again.", { retryAfterSeconds: 1 });
}

const lockDevice = fixedStatement(
  sql`select id from devices where id = ${sql.placeholder("deviceId")} for update`,
  ([id]) => id,
);

async function settleOnce(
  tx: Database,
  context: {
    readonly deviceId: bigint;
    readonly catalogs: CatalogCache;
    /** Rollouts that have refused this check a place. */
    readonly full: readonly RolloutFacts[];
    readonly ended: AttemptState[];
  },
): Promise<CheckAnswer> {
  const { deviceId, catalogs, full, ended } = context;
  // A statement of its own: what is read in the same one would be older than the lock, where that had to be waited for.
  await lockDevice(tx, { deviceId });
  const state = await loadDeviceState(tx, deviceId);
  if (state === undefined) throw deletedMeanwhile();
  const { device, product, history } = state;
  const catalog = await catalogs.getWithin(tx, { productId: product.id, revision: product.catalogRevision });

  const decision = decideUpdate({ ...state, catalog, places: withoutPlaces(state, { full, catalog }) });
  if (decision.outcome === "continue") return liveAnswer(state, { live: decision.live, catalog, how: "joined" });
  if (decision.ends !== undefined) {
    const { rolloutId } = decision.ends.live;
    const next = decision.outcome === "offer" ? decision.candidates[0].rollout : undefined;
    if (next?.counted && next.id !== rolloutId) await lockCounters(tx, [rolloutId, next.id]);
    await endAttempt(tx, { ends: decision.ends, catalog, ended });
  }
  if (decision.outcome === "none") return noneAnswer(state, decision);

  const [candidate] = decision.candidates;
  const { rollout } = candidate;
  const fromVersion = device.reportedVersion ?? device.confirmedVersion;
  // The last lock: what is inserted afterwards waits only for rows of this device, which is locked. The attempt is opened
  // once it has its place, so that the times of its history tell who had one when.
  const placed = await takePlace(tx, { rollout, newcomer: isNewcomer(rollout, history) });
  if (!placed) throw new PlaceRefused(rollout);
  const opened = await openAttempt(tx, { deviceId, candidate, fromVersion, autoConfirms: device.autoConfirms });
  if (opened === undefined) throw new RaceLost();
  return updateAnswer(state, { how: "created", ...opened, firmware: candidate.firmware });
}

/** The answer that offers the open attempt as it is. */
export function liveAnswer(
  state: DeviceState,
  found: { readonly live: LiveAttempt; readonly catalog: Catalog; readonly how: "found" | "joined" },
): CheckAnswer {
  const { live, catalog, how } = found;
  const firmware = catalog.firmwareById.get(live.record.firmwareId);
  if (firmware === undefined) throw new Error(`Attempt ${live.id} is for a firmware that its product's catalog lacks.`);
  return updateAnswer(state, {
    how,
    attempt: { id: live.id, number: live.n, state: live.state },
    upgradeId: live.record.publicId,
    firmware,
  });
}

/**
 * The answer of a check that was refused a place, where nothing else is to be had and nothing to be written: of a crowd
 * that runs for the last place, nearly all. It is told as to any check without an offer, without another transaction.
 */
async function noneInstead(
  context: { readonly db: Database; readonly catalogs: CatalogCache; readonly full: readonly RolloutFacts[] },
  deviceId: bigint,
): Promise<CheckAnswer | undefined> {
  const { db, catalogs, full } = context;
  const state = await loadDeviceState(db, deviceId);
  if (state === undefined) return undefined;
  const { id: productId, catalogRevision: revision } = state.product;
  const catalog = await catalogs.get({ productId, revision });
  const decision = decideUpdate({ ...state, catalog, places: withoutPlaces(state, { full, catalog }) });
  return decision.outcome === "none" && decision.ends === undefined ? noneAnswer(state, decision) : undefined;
}

async function endAttempt(
  tx: Database,
  context: { readonly ends: EndOfAttempt; readonly catalog: Catalog; readonly ended: AttemptState[] },
): Promise<void> {
  const { ends, catalog, ended } = context;
  const { live, event } = ends;
  const next = nextState({ ...live, confirmBy: catalog.confirmBy }, event);
  if (next.effect !== "moved") return;
  const { state: to, cancelOutcome } = next;
  if (!(await recordTransition(tx, { attemptId: live.id, from: live.state, to, cancelOutcome }))) throw new RaceLost();
  ended.push(to);
}

/**
 * The places as this check has found them: somebody has taken the last one, and may well have given it back before this
 * reads again, but a check that runs after every free place in a crowd would never have an answer.
 */
function withoutPlaces(
  { places }: DeviceState,
  { full, catalog }: { readonly full: readonly RolloutFacts[]; readonly catalog: Catalog },
): ReadonlyMap<bigint, RolloutPlaces> {
  if (full.length === 0) return places;
  const unchanged = full.filter(({ id, revision }) =>
    catalog.offers.some(({ rollout }) => rollout.id === id && rollout.revision === revision),
  );
  const none = { live: Number.POSITIVE_INFINITY, granted: Number.POSITIVE_INFINITY };
  return new Map([
    ...places,
    ...unchanged.map(({ id }) => [id, { thresholdReached: false, ...places.get(id), ...none }] as const),
  ]);
}

/** Whether its token is no longer valid, or a gateway registers it anew, the next check says. */
function deletedMeanwhile(): ServiceBusyError {
  return new ServiceBusyError("This device was deleted while it was checked. Ask again.", { retryAfterSeconds: 1 });
}

/** Rolls a transaction back: the rollout has no place for another attempt. */
class PlaceRefused extends Error {
  readonly rollout: RolloutFacts;

  constructor(rollout: RolloutFacts) {
    super("The rollout has no place left.");
    this.name = "PlaceRefused";
    this.rollout = rollout;
  }
}

/** Rolls a transaction back: another process was faster. */
class RaceLost extends Error {
  constructor() {
    super("Another process has changed this device's upgrade first.");
    this.name = "RaceLost";
  }
}
