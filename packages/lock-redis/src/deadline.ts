/** What {@link withDeadline} rejects with: no answer came in time, so nothing is known about what the server did. */
export class NoAnswerInTime extends Error {
  override readonly name = "NoAnswerInTime";
  readonly timeoutMs: number;

  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`);
    this.timeoutMs = timeoutMs;
  }
}

/**
 * Settles as `pending` does, or rejects with {@link NoAnswerInTime} after `timeoutMs`. Clients have timeouts of their
 * own, but by default they queue and resend without end, and not every queue of theirs obeys them.
 *
 * The timer keeps the process alive, at most for `timeoutMs`: otherwise a process with nothing else to do would end
 * silently in the middle of an `await`. Background work says `background: true`.
 */
export function withDeadline<T>(
  pending: Promise<T>,
  options: { readonly timeoutMs: number; readonly background?: boolean },
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      // After a blocked event loop timers run before sockets are read: the answer may be here already. Look first.
      setImmediate(() => reject(new NoAnswerInTime(options.timeoutMs)));
    }, options.timeoutMs);
    if (options.background === true) timer.unref();
    pending.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
