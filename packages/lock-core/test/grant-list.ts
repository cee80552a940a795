import type { LockMode } from "@ota/lock-core";

export interface GrantRequest {
  readonly key: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly mode: LockMode;
}

type Owned = Pick<GrantRequest, "key" | "owner">;

/** A model of a store: every grant ever made, of which an owner's last one counts. Nothing is ever removed. */
export class GrantList {
  now = 0;
  readonly #grants: (GrantRequest & { readonly until: number })[] = [];

  acquire(request: GrantRequest): unknown {
    const standsAgainst = this.#others(request).some(({ mode }) => [mode, request.mode].includes("exclusive"));
    return standsAgainst ? { outcome: "contended" } : this.#note(request, { outcome: "granted" });
  }

  extend(request: Omit<GrantRequest, "mode">): unknown {
    const own = this.#own(request);
    return own === undefined ? "lost" : this.#note({ ...request, mode: own.mode }, "extended");
  }

  promote(request: Omit<GrantRequest, "mode">): unknown {
    if (this.#own(request) === undefined) return { outcome: "lost" };
    if (this.#others(request).length > 0) return { outcome: "contended" };
    return this.#note({ ...request, mode: "exclusive" }, { outcome: "promoted" });
  }

  demote(request: Omit<GrantRequest, "mode">): unknown {
    return this.#own(request) === undefined ? "lost" : this.#note({ ...request, mode: "shared" }, "demoted");
  }

  release(request: Owned): unknown {
    return this.#own(request) === undefined ? "not-held" : this.#end(request, "released");
  }

  isHeld(request: Owned): unknown {
    return this.#own(request) !== undefined;
  }

  inspect({ key }: Pick<GrantRequest, "key">): unknown {
    const holders = this.#holders(key);
    const remaining = holders.map(({ until }) => until - this.now).sort((one, other) => one - other);
    return { mode: holders[0]?.mode ?? "free", holders: remaining.map((remainingMs) => ({ remainingMs })) };
  }

  forceRelease({ key }: Pick<GrantRequest, "key">): unknown {
    const holders = this.#holders(key);
    for (const holder of holders) this.#end(holder, "released");
    return holders.length > 0 ? "released" : "not-held";
  }

  #holders(key: string) {
    const grants = this.#grants.filter((grant) => grant.key === key);
    const last = new Map(grants.map((grant) => [grant.owner, grant]));
    return [...last.values()].filter(({ until }) => this.now < until);
  }

  #own({ key, owner }: Owned) {
    return this.#holders(key).find((holder) => holder.owner === owner);
  }

  #others({ key, owner }: Owned) {
    return this.#holders(key).filter((holder) => holder.owner !== owner);
  }

  #note<T>(request: GrantRequest, answer: T): T {
    this.#grants.push({ ...request, until: this.now + request.ttlMs });
    return answer;
  }

  #end<T>({ key, owner }: Owned, answer: T): T {
    return this.#note({ key, owner, ttlMs: 0, mode: "shared" }, answer);
  }
}
