import {
  type AcquireRequest,
  type LockStore,
  type MemoryState,
  MemoryStore,
  type PlaceRequest,
  type WaitPlace,
} from "@ota/lock-core";

/** A store in memory with one mistake about those who wait. */
export interface WaitMistake {
  readonly name: string;
  readonly Store: new (options: { readonly state: MemoryState }) => LockStore;
  readonly caughtBy: readonly string[];
}

/** The last grant of each key, in whichever store. */
const lastGrants = new Map<string, AcquireRequest>();

/** Mistakes about the line: each changes what one operation of a place does. */
export const waitMistakes: readonly WaitMistake[] = [
  {
    name: "a release tells nobody",
    Store: class extends MemoryStore {
      override openPlace({ key }: PlaceRequest): WaitPlace {
        return super.openPlace({ key, onTurn: () => {} });
      }
    },
    caughtBy: ["release-tells-the-waiter"],
  },
  {
    name: "who came last is served first",
    Store: class extends MemoryStore {
      override openPlace(request: PlaceRequest): WaitPlace {
        const place = super.openPlace(request);
        return { ...place, acquire: (asked) => place.acquire({ ...asked, waitedMs: -asked.waitedMs }) };
      }
    },
    caughtBy: ["longest-waiter-comes-first", "newcomer-does-not-pass-the-line", "release-puts-the-next-in-line"],
  },
  {
    name: "a place takes the key whenever it is free",
    Store: class extends MemoryStore {
      override openPlace(request: PlaceRequest): WaitPlace {
        const place = super.openPlace(request);
        return {
          ...place,
          acquire: async (asked) => {
            const answer = await this.acquire(asked);
            return answer.outcome === "granted" ? answer : place.acquire(asked);
          },
        };
      }
    },
    caughtBy: ["longest-waiter-comes-first", "newcomer-does-not-pass-the-line", "release-puts-the-next-in-line"],
  },
  {
    name: "a place cannot be left",
    Store: class extends MemoryStore {
      override openPlace(request: PlaceRequest): WaitPlace {
        return { ...super.openPlace(request), leave: async () => {} };
      }
    },
    caughtBy: ["left-place-is-forgotten"],
  },
  {
    name: "a place in line prolongs the lease that it waits for",
    Store: class extends MemoryStore {
      override async acquire(request: AcquireRequest) {
        lastGrants.set(request.key, request);
        return super.acquire(request);
      }

      override openPlace(request: PlaceRequest): WaitPlace {
        const place = super.openPlace(request);
        return {
          ...place,
          acquire: async (asked) => {
            const holder = lastGrants.get(asked.key);
            if (holder !== undefined) await this.extend({ ...holder, ttlMs: holder.ttlMs + 1 });
            return place.acquire(asked);
          },
        };
      }
    },
    caughtBy: ["waiting-leaves-the-lock-alone"],
  },
  {
    name: "a place that was not told of its turn is refused for ever",
    Store: class extends MemoryStore {
      override openPlace({ key, onTurn }: PlaceRequest): WaitPlace {
        let mayAsk = true;
        const place = super.openPlace({
          key,
          onTurn: () => {
            mayAsk = true;
            onTurn();
          },
        });
        return {
          ...place,
          acquire: async (asked) => {
            const answer = mayAsk ? await place.acquire(asked) : ({ outcome: "contended" } as const);
            mayAsk = false;
            return answer;
          },
        };
      }
    },
    caughtBy: ["silent-place-costs-little"],
  },
  {
    name: "a release forgets the waiter of its own process",
    Store: class extends MemoryStore {
      override openPlace(request: PlaceRequest): WaitPlace {
        const place = super.openPlace(request);
        return { ...place, release: ({ next: _, ...owned }) => place.release(owned) };
      }
    },
    caughtBy: ["release-puts-the-next-in-line"],
  },
];
