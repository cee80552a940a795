/** What is late: the process itself, or its database. */
export type OverloadCause = "event-loop" | "database";

/** The limits by their names. */
export type LimitName = "check" | "failed_authentication";

/** What the limits did, for metrics: each one as a fact that is over. */
export type LimitEvent =
  /** Checks begin, or cease, to be turned away. */
  | { readonly kind: "overload"; readonly cause: OverloadCause; readonly active: boolean }
  /** A check was turned away. */
  | { readonly kind: "shed"; readonly cause: OverloadCause }
  /** A request was refused by a limit. */
  | { readonly kind: "limited"; readonly limit: LimitName }
  /** A count could not be shared with the other processes. */
  | { readonly kind: "not_shared" };

/** Receives events as they happen. It is called synchronously, must be quick, and must not throw. */
export type LimitObserver = (event: LimitEvent) => void;
