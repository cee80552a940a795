/** What {@link withDeadline} rejects with: no answer came in time, so nothing is known about what the server did. */
export class NoAnswerInTime extends Error {
  override readonly name = "NoAnswerInTime";
  readonly timeoutMs: number;

  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`);
    this.timeoutMs = timeoutMs;
  }
}

export interface DeadlineOptions {
  readonly timeoutMs: number;
  /**
   * Whether the process may end meanwhile.
   * @default false: one with nothing else to do would end silently in the middle of an `await`.
   */
  readonly background?: boolean;
}

/**
 * Settles as `pending` does, or rejects with {@link NoAnswerInTime} after `timeoutMs`. Clients have timeouts of their
 * own, but by default they queue and resend without end, and not every queue of theirs obeys them.
 */
export function withDeadline<T>(pending: Promise<T>, options: DeadlineOptions): Promise<T> {
  return new Promise((resolve, reject) => {
    const deadline = new Deadline(options, { fail: reject });
    pending.then(
      (value) => {
        deadline.end();
        resolve(value);
      },
      (error: unknown) => {
        deadline.end();
        reject(error);
      },
    );
  });
}

/** What waits for an answer until a deadline. */
interface Waiting {
  fail(error: NoAnswerInTime): void;
}

/** Lets what waits fail with a {@link NoAnswerInTime} after `timeoutMs`, unless it has ended before. */
export class Deadline {
  readonly passesAt: number;
  readonly #queue: DeadlineQueue;
  #waiting: Waiting | undefined;
  /** Its neighbours in the queue. */
  previous: Deadline | undefined;
  next: Deadline | undefined;

  constructor({ timeoutMs, background = false }: DeadlineOptions, waiting: Waiting) {
    this.passesAt = performance.now() + timeoutMs;
    this.#waiting = waiting;
    this.#queue = queueOf(timeoutMs, background);
    this.#queue.add(this);
  }

  /** To be called once, or more often, when there is nothing to wait for any more. False when it had passed. */
  end(): boolean {
    if (this.#waiting === undefined) return false;
    this.#waiting = undefined;
    this.#queue.remove(this);
    return true;
  }

  pass(timeoutMs: number): void {
    const waiting = this.#waiting;
    if (this.end()) waiting?.fail(new NoAnswerInTime(timeoutMs));
  }
}

/**
 * All deadlines with one timeout, those that pass first coming first: one timer serves them all, as setting and clearing
 * one each costs more than many an operation does besides.
 */
class DeadlineQueue {
  readonly #timeoutMs: number;
  readonly #background: boolean;
  #first: Deadline | undefined;
  #last: Deadline | undefined;
  /** Set from the first deadline until it fires and finds none. Keeps the process alive while there are any. */
  #timer: NodeJS.Timeout | undefined;

  constructor(timeoutMs: number, background: boolean) {
    this.#timeoutMs = timeoutMs;
    this.#background = background;
  }

  add(deadline: Deadline): void {
    deadline.previous = this.#last;
    if (this.#last !== undefined) this.#last.next = deadline;
    this.#last = deadline;
    if (this.#first !== undefined) return;
    this.#first = deadline;
    if (this.#timer === undefined) this.#arm(deadline);
    else if (!this.#background) this.#timer.ref();
  }

  remove(deadline: Deadline): void {
    const { previous, next } = deadline;
    deadline.previous = undefined;
    deadline.next = undefined;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    if (this.#first === undefined) this.#timer?.unref();
  }

  #arm({ passesAt }: Deadline): void {
    this.#timer = setTimeout(() => this.#look(), Math.max(1, Math.ceil(passesAt - performance.now())));
    if (this.#background) this.#timer.unref();
  }

  #look(): void {
    this.#timer = undefined;
    const now = performance.now();
    if (this.#first === undefined) return;
    if (this.#first.passesAt > now) this.#arm(this.#first);
    // After a blocked event loop timers run before sockets are read: the answers may be here already. Look first.
    else setImmediate(() => this.#passUntil(now));
  }

  #passUntil(now: number): void {
    while (this.#first !== undefined && this.#first.passesAt <= now) this.#first.pass(this.#timeoutMs);
    if (this.#first !== undefined && this.#timer === undefined) this.#arm(this.#first);
  }
}

const queues = new Map<number, DeadlineQueue>();
const backgroundQueues = new Map<number, DeadlineQueue>();

function queueOf(timeoutMs: number, background: boolean): DeadlineQueue {
  const byTimeout = background ? backgroundQueues : queues;
  let queue = byTimeout.get(timeoutMs);
  if (queue === undefined) {
    queue = new DeadlineQueue(timeoutMs, background);
    byTimeout.set(timeoutMs, queue);
  }
  return queue;
}
