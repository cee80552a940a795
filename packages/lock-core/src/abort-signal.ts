/**
 * The part of an `AbortSignal` that is used here. Every `AbortSignal` fits; naming the part keeps the types free of
 * `@types/node` and of the DOM library.
 */
export interface AbortSignalLike {
  readonly aborted: boolean;
  /** What a waiting call rejects with when the signal aborts. */
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * Settles as `promise` does, or rejects with `signal.reason` as soon as the signal aborts. The promise itself goes on;
 * a later rejection of it is not reported as unhandled.
 */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignalLike | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise<T>((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    const done = (): void => signal.removeEventListener("abort", onAbort);
    promise.then(resolve, reject).finally(done);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort);
  });
}
