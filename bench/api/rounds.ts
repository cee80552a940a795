import type { Contender, Devices } from "./contenders.ts";
import { Contestant, median, medianTurn, type Turn } from "./measures.ts";
import type { Backends } from "./server-process.ts";

/** What a contender has shown over all rounds. */
export interface Standing {
  readonly name: string;
  readonly turn: Turn;
  /** The median of its throughput by that of each other contender in the same round. */
  readonly ratioTo: (other: string) => number;
  /** The same of any figure. */
  readonly figureRatioTo: (other: string, figure: keyof Turn) => number;
}

/** How rounds are run. */
export interface RoundsPlan {
  readonly postgresPid: number;
  readonly rounds: number;
  /** Of load before the first round, for each contender: Express needs 4 to 6 s until V8 has done its work. */
  readonly warmUpMs: number;
  readonly turnMs: number;
  /** @default nothing */
  readonly beforeRound?: () => Promise<void>;
  readonly progress: (text: string) => void;
}

/** A contender with what it works on. */
export interface Entry {
  readonly contender: Contender;
  readonly backends: Backends;
  readonly size: Devices;
}

/** Every contender in turn, in each round, so that all meet the same machine. */
export async function runRounds(entries: readonly Entry[], plan: RoundsPlan): Promise<readonly Standing[]> {
  const { postgresPid, rounds, warmUpMs, turnMs, progress } = plan;
  await using stack = new AsyncDisposableStack();
  const turns = new Map<Contestant, Turn[]>();
  for (const { contender, backends, size } of entries) {
    turns.set(stack.use(await Contestant.start(contender, backends, size)), []);
  }
  for (const contestant of turns.keys()) {
    progress(`warming up: ${contestant.contender.name}`);
    await contestant.turn(postgresPid, { leadInMs: 0, measuredMs: warmUpMs });
  }
  for (let round = 1; round <= rounds; round += 1) {
    progress(`round ${round} of ${rounds}`);
    await plan.beforeRound?.();
    for (const [contestant, list] of turns) {
      list.push(await contestant.turn(postgresPid, { leadInMs: Math.min(1_000, turnMs / 2), measuredMs: turnMs }));
    }
  }
  return standings(new Map([...turns].map(([{ contender }, list]) => [contender.name, list])));
}

function standings(turns: ReadonlyMap<string, readonly Turn[]>): readonly Standing[] {
  return [...turns].map(([name, own]) => {
    const figureRatioTo = (other: string, figure: keyof Turn): number =>
      median(own.map((turn, round) => turn[figure] / (turns.get(other)?.[round]?.[figure] ?? Number.NaN)));
    return { name, turn: medianTurn(own), figureRatioTo, ratioTo: (other) => figureRatioTo(other, "perSecond") };
  });
}
