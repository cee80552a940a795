import type { Clock } from "./clock.ts";

/** How long a place may take to use its turn before the next one has it. */
const TURN_MS = 100;

/** A place in the line for a key of a `MemoryState`. */
export interface Spot {
  readonly onTurn: () => void;
  /** Since when its first waiter waits, on the state's clock. */
  since: number;
  /** Set while it is this place's turn. */
  turnEndsAt: number | undefined;
}

interface SpotWithTurn extends Spot {
  turnEndsAt: number;
}

/** Those who wait for one key: the one whose turn it is comes first, then whoever has waited longest. */
export class MemoryLine {
  readonly #clock: Pick<Clock, "now">;
  readonly #spots = new Set<Spot>();
  readonly #kept: { readonly key: string; readonly lines: Map<string, MemoryLine> };

  /** Is kept in `lines`, under its key, for as long as somebody waits. */
  constructor(clock: Pick<Clock, "now">, kept: { readonly key: string; readonly lines: Map<string, MemoryLine> }) {
    this.#clock = clock;
    this.#kept = kept;
  }

  /** Gives up a turn that the spot may have had. */
  join(spot: Spot, waitedMs: number): void {
    spot.since = this.#clock.now() - waitedMs;
    spot.turnEndsAt = undefined;
    this.#spots.add(spot);
    this.#kept.lines.set(this.#kept.key, this);
  }

  leave(spot: Spot): void {
    spot.turnEndsAt = undefined;
    this.#spots.delete(spot);
    if (this.#spots.size === 0) this.#kept.lines.delete(this.#kept.key);
  }

  /** For a key that is free: whose turn it is instead of this spot's. The spot is in line then. */
  aheadOf(spot: Spot, waitedMs: number): SpotWithTurn | undefined {
    if (this.#spots.size === 0) return undefined;
    if (spot.turnEndsAt === undefined) this.join(spot, waitedMs);
    const first = this.passTurn(spot);
    return first === spot ? undefined : first;
  }

  /** For a key that is free: gives the turn to the first, unless somebody has it, and tells all but `asking`. */
  passTurn(asking?: Spot): SpotWithTurn | undefined {
    const now = this.#clock.now();
    for (;;) {
      const first = this.#first();
      if (first === undefined) return undefined;
      if (first.turnEndsAt === undefined) {
        first.turnEndsAt = now + TURN_MS;
        if (first !== asking) first.onTurn();
        return first as SpotWithTurn;
      }
      if (first.turnEndsAt > now || first === asking) return first as SpotWithTurn;
      this.leave(first);
    }
  }

  #first(): Spot | undefined {
    let first: Spot | undefined;
    for (const spot of this.#spots) {
      if (spot.turnEndsAt !== undefined) return spot;
      if (first === undefined || spot.since < first.since) first = spot;
    }
    return first;
  }
}
