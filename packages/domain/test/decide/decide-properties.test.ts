import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bucketOf } from "../../src/decide/bucket.ts";
import { type Decision, decideUpdate } from "../../src/decide/decide-update.ts";
import { compareVersions } from "../../src/versions/version.ts";
import { LIVE_ATTEMPT_STATES, TERMINAL_ATTEMPT_STATES } from "../../src/vocabulary.ts";
import type { Case, GivenAttempt, GivenFirmware, GivenRollout } from "./cases/case.ts";
import { describeDecision, factsOfCase } from "./facts-of-case.ts";

const VERSIONS = ["1.0.0", "1.1.0", "1.2.0-rc.1", "1.2.0", "2.0.0", "2.1.0"] as const;
const HARDWARE = ["A", "B"] as const;
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
/** In one of four cases only, so that most situations come to an offer. */
const seldom = <T>(value: fc.Arbitrary<T>) =>
  fc.nat({ max: 3 }).chain((dice) => (dice === 0 ? value : fc.constant(undefined)));

const WINDOWS = [
  { opensIn: -60, closesIn: 60, timeZone: "UTC" },
  { opensIn: 60, closesIn: 90, timeZone: "UTC" },
] as const;
const limits = fc.record(
  {
    allowsDevice: fc.boolean(),
    groups: fc.constantFrom([], ["lab"]),
    attributeFilter: fc.constantFrom(null, { attribute: "region", eq: "eu" }),
    maxConcurrent: fc.constantFrom(3, 100),
    maxTotal: fc.constantFrom(3, 100),
    taken: fc.record({ live: fc.nat({ max: 4 }), granted: fc.nat({ max: 4 }), thresholdReached: fc.constant(false) }),
    window: fc.constantFrom(...WINDOWS),
  },
  { requiredKeys: [] },
);
const rollout = fc
  .record({
    state: fc.constantFrom("running", "running", "running", "paused", "finished", "stopped"),
    channel: fc.constantFrom("stable", "stable", "beta"),
    priority: fc.nat({ max: 2 }),
    percentageBasisPoints: fc.constantFrom(10_000, 10_000, 5_000, 0),
    allowDowngrade: fc.boolean(),
    limits: seldom(limits),
  })
  .map(({ limits: given, ...rest }): GivenRollout => ({ ...rest, ...given }));
const firmwareOf = (version: string): fc.Arbitrary<GivenFirmware> =>
  fc
    .record({
      state: fc.constantFrom("released", "released", "released", "withdrawn"),
      hardware: seldom(fc.subarray([...HARDWARE])),
      requires: seldom(fc.constantFrom(...VERSIONS)),
      rollouts: fc.array(rollout, { minLength: 1, maxLength: 2 }),
    })
    .map(
      ({ requires, hardware = [], ...rest }) =>
        ({ version, hardware, ...rest, ...(requires === undefined ? {} : { requires }) }) as const,
    );

const terminal: fc.Arbitrary<GivenAttempt> = fc.record({
  state: fc.constantFrom(...TERMINAL_ATTEMPT_STATES),
  closedMinutesAgo: fc.nat({ max: 60 }),
});

const situation: fc.Arbitrary<Case> = fc
  .subarray([...VERSIONS], { minLength: 1 })
  .chain((versions) =>
    fc.record({
      firmware: fc.tuple(...versions.map(firmwareOf)),
      runs: optional(fc.constantFrom(...VERSIONS, "1.0.0", "1.0.0", "1.0.5", "1.0.5", "3.0.0", "nonsense")),
      confirmed: optional(fc.constantFrom(...VERSIONS)),
      hardware: optional(fc.constantFrom(...HARDWARE)),
      channel: fc.constantFrom("stable", "stable", "beta"),
      blocked: fc.nat({ max: 9 }).map((dice) => dice === 0),
      groups: fc.constantFrom([], ["lab", "berlin"]),
      attributes: fc.constantFrom({}, { region: "eu" }),
      records: fc.tuple(...versions.map(() => seldom(fc.array(terminal, { maxLength: 4 })))),
      live: seldom(
        fc.record({ at: fc.nat({ max: versions.length - 1 }), state: fc.constantFrom(...LIVE_ATTEMPT_STATES) }),
      ),
    }),
  )
  .map(({ firmware, records, live, runs, confirmed, hardware, ...device }) => ({
    title: "generated",
    expect: "",
    firmware,
    device: {
      ...device,
      ...(runs === undefined ? {} : { runs }),
      ...(confirmed === undefined ? {} : { confirmed }),
      ...(hardware === undefined ? {} : { hardware }),
    },
    records: records
      .map((attempts = [], index) => ({
        firmware: firmware[index]?.version as string,
        attempts: live?.at === index ? [...attempts, { state: live.state }] : attempts,
      }))
      .filter(({ attempts }) => attempts.length > 0),
  }));

function offered(decision: Decision) {
  return decision.outcome === "offer" ? decision.candidates : [];
}

const RUNS = { numRuns: 1_000 };

describe("decideUpdate, in any situation", () => {
  it("decides the same from the same facts", () => {
    fc.assert(
      fc.property(situation, (given) => {
        expect(decideUpdate(factsOfCase(given))).toEqual(decideUpdate(factsOfCase(given)));
      }),
      RUNS,
    );
  });

  it("decides the same in whatever order the catalog and the history come", () => {
    fc.assert(
      fc.property(situation, fc.infiniteStream(fc.nat()), (given, dice) => {
        const shuffle = <T>(list: readonly T[]): T[] =>
          list
            .map((item) => [dice.next().value as number, item] as const)
            .sort(([a], [b]) => a - b)
            .map(([, item]) => item);
        const facts = factsOfCase(given);
        const shuffled = { ...facts, ...factsOfCase(given, shuffle) };
        expect(describeDecision(decideUpdate(shuffled), shuffled)).toBe(describeDecision(decideUpdate(facts), facts));
      }),
      RUNS,
    );
  });

  it("looks at no rollout that is over, and would decide the same if it did", () => {
    let over = 0;
    fc.assert(
      fc.property(situation, (given) => {
        const { catalog, ...facts } = factsOfCase(given);
        const { offers, openOffers } = catalog;
        over += offers.length - openOffers.length;
        expect(openOffers.filter(({ rollout }) => rollout.state === "finished" || rollout.state === "stopped")).toEqual(
          [],
        );
        expect(decideUpdate({ ...facts, catalog })).toEqual(
          decideUpdate({ ...facts, catalog: { ...catalog, openOffers: offers } }),
        );
      }),
      RUNS,
    );
    expect(over).toBeGreaterThan(100);
  });

  it("leads a device that installs whatever it is offered to an end", () => {
    let installs = 0;
    fc.assert(
      fc.property(situation, (given) => {
        let runs = given.device?.runs;
        const seen: string[] = [];
        for (;;) {
          const device = { ...given.device, ...(runs === undefined ? {} : { runs }) };
          const [best] = offered(decideUpdate(factsOfCase({ ...given, device, records: [] })));
          if (best === undefined) return;
          runs = best.firmware.version;
          installs += 1;
          // However many rollouts and steps there are, no version comes as often as that.
          seen.push(runs);
          expect(seen.length, seen.join(" ")).toBeLessThan(30);
        }
      }),
      RUNS,
    );
    expect(installs).toBeGreaterThan(100);
  });

  it("never offers a downgrade that the rollout does not allow", () => {
    let offers = 0;
    fc.assert(
      fc.property(situation, (given) => {
        const runs = given.device?.runs ?? given.device?.confirmed;
        for (const { firmware, rollout } of offered(decideUpdate(factsOfCase(given)))) {
          offers += 1;
          if (runs !== undefined && !rollout.allowDowngrade) {
            expect(compareVersions("semver", firmware.version, runs)).toBeGreaterThan(0);
          }
        }
      }),
      RUNS,
    );
    // A property of nothing proves nothing.
    expect(offers).toBeGreaterThan(RUNS.numRuns / 10);
  });

  it("never offers the version that the device runs, nor anything when it runs nonsense", () => {
    fc.assert(
      fc.property(situation, (given) => {
        const runs = given.device?.runs ?? given.device?.confirmed;
        const candidates = offered(decideUpdate(factsOfCase(given)));
        if (runs === "nonsense") expect(candidates).toEqual([]);
        for (const { firmware } of candidates) {
          if (runs !== undefined) expect(compareVersions("semver", firmware.version, runs)).not.toBe(0);
        }
      }),
      RUNS,
    );
  });

  it("never offers what is withdrawn, paused, for other hardware or another channel, or what its requirement forbids", () => {
    fc.assert(
      fc.property(situation, (given) => {
        const facts = factsOfCase(given);
        const runs = given.device?.runs ?? given.device?.confirmed;
        for (const { firmware, rollout } of offered(decideUpdate(facts))) {
          expect(firmware.state).toBe("released");
          expect(rollout.state).toBe("running");
          expect(rollout.channel).toBe(facts.device.channel);
          if (firmware.hardwareRevisions.length > 0) {
            expect(firmware.hardwareRevisions).toContain(facts.device.hardwareRevision);
          }
          if (runs !== undefined && firmware.requiresVersion !== null) {
            expect(compareVersions("semver", runs, firmware.requiresVersion)).toBeGreaterThanOrEqual(0);
          }
        }
      }),
      RUNS,
    );
  });

  it("never opens a second attempt beside an open one", () => {
    fc.assert(
      fc.property(situation, (given) => {
        const facts = factsOfCase(given);
        const decision = decideUpdate(facts);
        const live = facts.history.records.some(({ attempts }) => attempts.at(-1)?.closedAt === null);
        if (live && decision.outcome === "offer") expect(decision.ends).toBeDefined();
      }),
      RUNS,
    );
  });
});

/** Several decisions in each. */
const FEWER_RUNS = { numRuns: 600 };

describe("a rollout's offer", () => {
  /** The situation with every rollout changed alike. */
  const changed = (given: Case, change: (rollout: GivenRollout) => GivenRollout): Case => ({
    ...given,
    firmware: given.firmware.map((one) => ({ ...one, rollouts: (one.rollouts ?? [{}]).map(change) })),
  });
  const offers = (given: Case) => offered(decideUpdate(factsOfCase(given))).map(({ rollout }) => rollout.id);

  it("is lost by no device when its percentage grows", () => {
    let kept = 0;
    fc.assert(
      fc.property(situation, fc.nat({ max: 10_000 }), fc.nat({ max: 10_000 }), (given, one, other) => {
        const { length } = given.firmware.flatMap(({ rollouts = [{}] }) => rollouts);
        for (let nth = 0; nth < length; nth += 1) {
          // The others' stay: one that ranks higher may well outrank it for the devices that it gains.
          const at = (percentageBasisPoints: number) => {
            let index = 0;
            return offers(
              changed(given, (rollout) => (index++ === nth ? { ...rollout, percentageBasisPoints } : rollout)),
            );
          };
          const id = BigInt(100 + nth);
          if (!at(Math.min(one, other)).includes(id)) continue;
          kept += 1;
          expect(at(Math.max(one, other))).toContain(id);
        }
      }),
      FEWER_RUNS,
    );
    expect(kept).toBeGreaterThan(0);
  });

  it.each(["paused", "stopped", "finished", "draft"] as const)("is made to nobody while it is %s", (state) => {
    fc.assert(
      fc.property(situation, (given) => {
        const decision = decideUpdate(factsOfCase(changed(given, (rollout) => ({ ...rollout, state }))));
        expect(decision.outcome).not.toBe("offer");
      }),
      FEWER_RUNS,
    );
  });

  it("is made to devices that are meant, within the window and the caps alone", () => {
    let limited = 0;
    fc.assert(
      fc.property(situation, limits, (given, more) => {
        const facts = factsOfCase(changed(given, (rollout) => ({ ...rollout, ...more })));
        const { device, places, history } = facts;
        const open = history.records.find(({ attempts }) => attempts.at(-1)?.closedAt === null);
        for (const { rollout, firmware } of offered(decideUpdate(facts))) {
          if (rollout.groups.length > 0) expect(device.groups).toContain("lab");
          if (rollout.attributeFilter !== null) expect(device.attributes).toEqual({ region: "eu" });
          if (rollout.percentageBasisPoints === 0) expect(device.allowedBy).toContain(rollout.id);
          // By the clock of the tests it is noon: the one that has opened did so at 11.
          if (rollout.windowFromMinute !== null) expect(rollout.windowFromMinute).toBe(11 * 60);
          const taken = places.get(rollout.id);
          // An open attempt has its place, whatever it is offered by.
          if (taken === undefined || rollout.maxConcurrent === null || firmware.id === open?.firmwareId) continue;
          limited += 1;
          expect(taken.live).toBeLessThan(rollout.maxConcurrent);
        }
      }),
      FEWER_RUNS,
    );
    expect(limited).toBeGreaterThan(0);
  });

  it("that is refused for the hour says when it opens, and is made then", () => {
    let opened = 0;
    fc.assert(
      fc.property(situation, fc.constantFrom(...WINDOWS), (given, window) => {
        const facts = factsOfCase(changed(given, (rollout) => ({ ...rollout, window })));
        const decision = decideUpdate(facts);
        if (decision.outcome !== "none" || decision.opening === undefined || decision.stopping !== undefined) return;
        if (decision.ends !== undefined || decision.reason !== "WINDOW_CLOSED") return;
        const later = decideUpdate({ ...facts, now: decision.opening.opensAt });
        expect(later.outcome === "none" ? later.reason : "").not.toBe("WINDOW_CLOSED");
        opened += 1;
      }),
      FEWER_RUNS,
    );
    expect(opened).toBeGreaterThan(0);
  });
});

describe("bucketOf", () => {
  it("lets a growing percentage only add devices", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 1n, max: 2n ** 62n }),
        fc.bigInt({ min: 1n, max: 2n ** 62n }),
        (rolloutId, deviceId) => {
          const bucket = bucketOf(rolloutId, deviceId);
          expect(bucket).toBe(bucketOf(rolloutId, deviceId));
          expect(bucket).toBeGreaterThanOrEqual(0);
          expect(bucket).toBeLessThan(10_000);
        },
      ),
    );
  });

  it("spreads devices evenly", () => {
    const buckets = Array.from({ length: 20_000 }, (_, device) => bucketOf(7n, BigInt(device)));
    const share = buckets.filter((bucket) => bucket < 1_000).length / buckets.length;
    expect(share).toBeGreaterThan(0.09);
    expect(share).toBeLessThan(0.11);
  });
});
