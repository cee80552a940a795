/**
 * Runs work once for all who want it at the same time. Whoever comes while a run is under way waits for the next one,
 * which all who came meanwhile share: nobody is given what was found out before it asked.
 */
export class SingleFlight<T> {
  readonly #flights = new Map<string, Flight<T>>();

  /** The result of a run of `work` that began at this call or later; all who share a run must bring equal work. */
  run(key: string, work: () => Promise<T>): Promise<T> {
    const current = this.#flights.get(key);
    if (current === undefined) return this.#start(key, work);
    current.next ??= current.result.then(
      () => this.#start(key, work),
      () => this.#start(key, work),
    );
    return current.next;
  }

  #start(key: string, work: () => Promise<T>): Promise<T> {
    const flight: Flight<T> = { result: work(), next: undefined };
    this.#flights.set(key, flight);
    const land = () => {
      // With a next run waiting the place is its own in the same turn, so that nobody slips in between.
      if (flight.next === undefined) this.#flights.delete(key);
    };
    flight.result.then(land, land);
    return flight.result;
  }
}

interface Flight<T> {
  readonly result: Promise<T>;
  next: Promise<T> | undefined;
}
