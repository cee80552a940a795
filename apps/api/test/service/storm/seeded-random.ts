/** Random draws that are the same for the same seed. */
export interface SeededRandom {
  /** From 0 up to, but not including, 1. */
  unit(): number;
  /** A whole number from 0 up to, but not including, the limit. */
  below(limit: number): number;
  pick<Item>(items: readonly [Item, ...Item[]]): Item;
  shuffled<Item>(items: readonly Item[]): Item[];
  /** Draws of its own for a part of the run, so that they do not depend on what the other parts do when. */
  fork(part: number): SeededRandom;
}

/** Mulberry32: 32 bits of state are enough for a test, and it is a few lines. */
export function seededRandom(seed: number): SeededRandom {
  let state = seed >>> 0;
  const random: SeededRandom = {
    unit() {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    },
    below: (limit) => Math.floor(random.unit() * limit),
    pick: (items) => items[random.below(items.length)] ?? items[0],
    shuffled(items) {
      const left = [...items];
      return items.map(() => left.splice(random.below(left.length), 1)[0] as (typeof items)[number]);
    },
    fork: (part) => seededRandom(Math.imul(seed ^ 0x9e3779b9, part + 1) + part),
  };
  return random;
}

/** The seed of `STORM_SEED`, to run again what has failed; else a new one. */
export function seedOfRun(): number {
  const given = process.env["STORM_SEED"];
  if (given === undefined || given === "") return Math.floor(Math.random() * 2 ** 31);
  const seed = Number(given);
  if (!Number.isInteger(seed)) throw new Error(`STORM_SEED must be a whole number, and is ${given}.`);
  return seed;
}
