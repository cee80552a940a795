/** How and why a lease ended. */
export interface LeaseEnd {
  readonly status: "lost" | "released";
  readonly reason: string;
}

export const RELEASED: LeaseEnd = { status: "released", reason: "it had been released" };
export const LAPSED: LeaseEnd = { status: "lost", reason: "its lifetime was over" };
export const HELD_TOO_LONG: LeaseEnd = { status: "lost", reason: "it had been held for as long as maxHoldMs allows" };
export const UNKNOWN_TO_STORE: LeaseEnd = { status: "lost", reason: "the store no longer knew it" };
