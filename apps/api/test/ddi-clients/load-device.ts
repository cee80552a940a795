import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { SeededRandom } from "../service/storm/seeded-random.ts";
import type { DdiReceived, DdiSender, DdiSent } from "./ddi-sender.ts";
import type { LoadLedger } from "./load-ledger.ts";

/** What all devices share. */
export interface LoadContext {
  readonly sender: DdiSender;
  readonly ledger: LoadLedger;
  /** Where the processes listen. */
  readonly urls: readonly string[];
  /** How long a second of a pause is: 1000, or less where the run has to be short. */
  readonly secondMs: number;
  /** The SHA-256 of the file that is offered. */
  readonly sha256: string;
}

/** How often rauc-hawkbit-updater sends feedback again that was answered 409 or 429, and how long it waits. */
const MAX_RETRIES = 10;
const RETRY_SECONDS = 1;

/** How often a device begins anew until it has installed. */
const MAX_CYCLES = 200;

/** What is told while it works, as swupdate and rauc do. */
const PROGRESS = ["download", "downloaded", "proceeding", "proceeding", "proceeding", "proceeding"] as const;

/** The file is fetched in so many pieces: a link that breaks. */
const PIECES = 4;

/** A device with a client of hawkBit: polls, tells its attributes, downloads, installs, and has the last word. */
export class LoadDevice {
  readonly #serial: string;
  readonly #token: string;
  readonly #random: SeededRandom;
  readonly #context: LoadContext;
  #isOffered = false;

  constructor(input: {
    readonly serial: string;
    readonly token: string;
    readonly random: SeededRandom;
    readonly context: LoadContext;
  }) {
    this.#serial = input.serial;
    this.#token = input.token;
    this.#random = input.random;
    this.#context = input.context;
  }

  /** Lives until its last word is answered, or given up. */
  async run(): Promise<void> {
    for (let cycle = 0; cycle < MAX_CYCLES; cycle += 1) {
      const polled = await this.#poll();
      const action = await this.#deployment(polled.action);
      // The first cycle is for the attributes, as with swupdate.
      if (polled.configData !== undefined) await this.#tellAttributes(polled.configData);
      else if (action !== undefined && (await this.#install())) return;
      else await this.#pause(polled.sleepSeconds);
    }
    throw new Error(`${this.#serial} has not come to an end in ${MAX_CYCLES} cycles.`);
  }

  async #poll() {
    const body = await this.#json("poll", this.#base());
    const links = body?._links ?? {};
    if (links.deploymentBase !== undefined && !this.#isOffered) {
      this.#isOffered = true;
      this.#context.ledger.offered();
    }
    const told = String(body?.config?.polling?.sleep ?? "00:00:05").split(":");
    return {
      action: links.deploymentBase?.href as string | undefined,
      installed: links.installedBase?.href as string | undefined,
      configData: links.configData === undefined ? undefined : `${this.#base()}/configData`,
      sleepSeconds: told.reduce((seconds, part) => 60 * seconds + Number(part), 0),
    };
  }

  async #tellAttributes(url: string): Promise<void> {
    const data = { board: "rev-b", site: "Berlin" };
    await this.#send("configData", { method: "PUT", url, json: { mode: "merge", data } });
  }

  /** Every client fetches it anew in each cycle. */
  #deployment(href: string | undefined) {
    return href === undefined ? undefined : this.#json("deployment", href);
  }

  /** Whether it is done with the action. */
  async #install(): Promise<boolean> {
    // swupdate asks for it all once more before it begins.
    const action = await this.#deployment((await this.#poll()).action);
    if (action === undefined) return false;
    const { id, deployment } = action;
    const [artifact] = deployment.chunks[0].artifacts;
    const href: string = artifact._links["download-http"].href;
    if (!(await this.#tell(id, { execution: "proceeding", details: ["begins"] }))) return false;
    if (!(await this.#download(href, artifact.size))) return false;
    for (const [index, execution] of PROGRESS.entries()) {
      const progress = { cnt: index + 1, of: PROGRESS.length };
      await this.#tell(id, { execution, progress, details: [`${progress.cnt} of ${progress.of}`] });
    }
    await this.#poll();
    const state = this.#random.unit() < 0.25 ? "failed" : "succeeded";
    const mark = `${this.#serial} is done`;
    const finished = state === "failed" ? "failure" : "success";
    const isAnswered = await this.#tell(id, { execution: "closed", finished, details: ["it took a while", mark] });
    this.#context.ledger.finals.push({ mark, attemptId: Number(id), state, isAnswered });
    const { configData, installed } = await this.#poll();
    if (configData !== undefined) await this.#tellAttributes(configData);
    if (installed !== undefined) await this.#json("installed", installed);
    return true;
  }

  async #download(url: string, size: number): Promise<boolean> {
    const head = await this.#send("artifact", { method: "HEAD", url });
    if (head.status !== 200) return false;
    if (head.contentLength !== size) throw new Error(`HEAD says ${head.contentLength} bytes, the deployment ${size}.`);
    const pieces: Buffer[] = [];
    for (let piece = 0; piece < PIECES; piece += 1) {
      const from = Math.floor((piece * size) / PIECES);
      const to = Math.floor(((piece + 1) * size) / PIECES) - 1;
      const got = await this.#send("artifact", { method: "GET", url, range: `bytes=${from}-${to}` });
      if (got.status !== 206) return false;
      pieces.push(got.bytes);
    }
    const sha256 = createHash("sha256").update(Buffer.concat(pieces)).digest("hex");
    if (sha256 !== this.#context.sha256) throw new Error(`${this.#serial} was given another file.`);
    return true;
  }

  /** Sends feedback, again as often as rauc-hawkbit-updater does; whether it was answered 2xx. */
  async #tell(
    actionId: string,
    told: {
      readonly execution: string;
      readonly finished?: string;
      readonly progress?: object;
      readonly details: readonly string[];
    },
  ): Promise<boolean> {
    const { execution, finished = "none", progress, details } = told;
    const status = { execution, result: { finished, ...(progress === undefined ? {} : { progress }) }, details };
    for (let sent = 0; sent <= MAX_RETRIES; sent += 1) {
      const url = `${this.#base()}/deploymentBase/${actionId}/feedback`;
      const what = execution === "closed" ? "last feedback" : "feedback";
      const answer = await this.#send(what, { method: "POST", url, json: { id: actionId, status } });
      if (answer.status >= 200 && answer.status < 300) return true;
      if (answer.status !== 409 && answer.status !== 429) return false;
      await this.#pause(RETRY_SECONDS);
    }
    return false;
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above
  async #json(what: string, url: string): Promise<any> {
    const { status, bytes } = await this.#send(what, { method: "GET", url });
    return status === 200 ? JSON.parse(bytes.toString()) : undefined;
  }

  async #send(what: string, request: Omit<DdiSent, "token">): Promise<DdiReceived> {
    const answer = await this.#context.sender.send({ ...request, token: this.#token });
    this.#context.ledger.note(what, answer);
    return answer;
  }

  /** At one of the processes, as a balancer has it. */
  #base(): string {
    const { urls } = this.#context;
    return `${urls[this.#random.below(urls.length)]}/DEFAULT/controller/v1/${this.#serial}`;
  }

  async #pause(seconds: number): Promise<void> {
    await sleep(seconds * this.#context.secondMs * (0.8 + 0.4 * this.#random.unit()));
  }
}
