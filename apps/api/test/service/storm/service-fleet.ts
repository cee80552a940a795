import { setTimeout as sleep } from "node:timers/promises";
import { type ListeningService, startServiceProcess } from "../service-process.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** How long a process may take to come up while parts that it needs are being restarted, on a busy machine. */
const START_WITHIN_MS = 180_000;

/** Several processes of the service behind a balancer, each started again at once when it has been killed. */
export class ServiceFleet {
  readonly size: number;
  readonly #env: Readonly<Record<string, string>>;
  /** By index; none where it is being started again. */
  readonly #running = new Map<number, ListeningService>();
  readonly #starting = new Map<number, Promise<void>>();
  readonly #all: ListeningService[] = [];
  /** Where the newest process listens, or was to. */
  #lastUrl = "";

  private constructor(size: number, env: Readonly<Record<string, string>>) {
    this.size = size;
    this.#env = env;
  }

  static async start(size: number, env: Readonly<Record<string, string>>): Promise<ServiceFleet> {
    const fleet = new ServiceFleet(size, env);
    await Promise.all(Array.from({ length: size }, (_, index) => fleet.#start(index)));
    return fleet;
  }

  /** Where its processes listen. */
  get urls(): readonly string[] {
    return [...this.#running.values()].map(({ url }) => url);
  }

  /** Where a balancer sends a request: to one of those that it knows no harm of; what is under way there breaks all the same. */
  urlOf(random: SeededRandom): string {
    const { urls } = this;
    return urls[random.below(urls.length)] ?? this.#lastUrl;
  }

  /**
   * Kills a process by SIGKILL and begins to start another in its place; resolves when the first has ended. One that is
   * being started is waited for, and so is one that would be the last.
   */
  async kill(index: number): Promise<void> {
    await this.#starting.get(index);
    if (this.#running.size === 1) await Promise.race(this.#starting.values());
    const service = this.#running.get(index);
    if (service === undefined) throw new Error(`There is no process ${index}.`);
    service.kill("SIGKILL");
    await service.exited;
    this.#running.delete(index);
    const starting = this.#start(index).finally(() => this.#starting.delete(index));
    // Thrown again by `allUp`, or by the next to kill it.
    starting.catch(() => {});
    this.#starting.set(index, starting);
  }

  /** Resolves when every process listens; rejects where one does not come up, or has ended and nobody has killed it. */
  async allUp(): Promise<void> {
    await Promise.all(this.#starting.values());
    for (const { url, errors } of this.#running.values()) {
      const answer = await fetch(`${url}/healthz`);
      if (answer.status !== 200) throw new Error(`${url} answers ${answer.status}: ${errors()}`);
    }
    if (this.#running.size < this.size) throw new Error("A process has not come up again.");
  }

  /** Ends every process by SIGTERM, so that nothing is under way any more; returns how each has ended. */
  async end(): Promise<readonly (number | NodeJS.Signals)[]> {
    const services = [...this.#running.values()];
    for (const service of services) service.kill("SIGTERM");
    return Promise.all(services.map(({ exited }) => exited));
  }

  /** All that any of the processes has written. */
  get written(): string {
    return this.#all.map(({ log, errors }) => log() + errors()).join("\n");
  }

  async dispose(): Promise<void> {
    await Promise.allSettled(this.#starting.values());
    await Promise.all(this.#all.map((service) => service.dispose()));
  }

  async #start(index: number): Promise<void> {
    const giveUpAt = performance.now() + START_WITHIN_MS;
    for (;;) {
      try {
        const service = await startServiceProcess({ env: this.#env });
        this.#all.push(service);
        this.#running.set(index, service);
        this.#lastUrl = service.url;
        return;
      } catch (error) {
        // Its database may be away just now.
        if (performance.now() > giveUpAt) throw error;
        await sleep(200);
      }
    }
  }
}
