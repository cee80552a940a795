import { hasPostgres } from "@ota/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type Database,
  deleteUnreferencedArtifact,
  foldFigures,
  installationId,
  listAudit,
  productFigures,
  rolloutFigures,
  unreferencedArtifacts,
} from "../../src/index.ts";
import { artifactOf, createFleet } from "../support/fleet.ts";
import { planOf } from "../support/plan-of.ts";
import { openPostgresClient, type PostgresTestDatabase } from "../support/postgres-client.ts";

/** Tables that grow with the fleet and with time. Rollouts are few: of some thousands a scan may be the quickest way. */
const SCANNED = /Seq Scan on (figures|figure_deltas|devices|upgrades|upgrade_attempts|firmware|audit_log)\b/;

describe.skipIf(!hasPostgres)("the statements of figures, the audit log and the collection of files", () => {
  let database: PostgresTestDatabase;
  let product: string;
  let rolloutId: string;

  beforeAll(async () => {
    database = await openPostgresClient();
    const { db, query } = database;
    await installationId(db);
    const fleet = await createFleet(db);
    product = fleet.product;
    const released = await fleet.release("1.0.0", { startRollout: true });
    rolloutId = released.rollouts[0]?.id as string;
    await query(`
      insert into products (name, version_scheme, confirm_by, poll_interval_seconds)
        select 'filler-' || n, 'semver', 'version', 300 from generate_series(1, 100) n;
      insert into firmware (public_id, product_id, version, canonical_version, state, size_bytes, sha256, sha1, md5, file_name, content_type)
        select gen_random_uuid(), p.id, '1.0.' || n, '1.0.' || n, 'released', 1,
          encode(sha256((p.id || ':' || n)::bytea), 'hex'), repeat('0', 40), repeat('0', 32), 'f', 'a/b'
        from products p, generate_series(1, 50) n where p.name like 'filler-%';
      insert into rollouts (public_id, firmware_id, channel, state)
        select gen_random_uuid(), id, 'stable', 'running' from firmware where file_name = 'f';
      insert into figures (kind, owner_id, key, count)
        select 'rollout_state', r.id, s, 5 from rollouts r, unnest(array['offered', 'succeeded', 'failed']) s;
      insert into figures (kind, owner_id, key, count)
        select 'rollout_step_state', r.id, r.firmware_id + n || ':succeeded', 1 from rollouts r, generate_series(1, 3) n;
      insert into figures (kind, owner_id, key, count)
        select 'product_version', p.id, '1.0.' || n, 5 from products p, generate_series(1, 50) n;
      insert into figure_deltas (kind, owner_id, key, delta)
        select 'rollout_state', r.id, 'offered', 1 from rollouts r, generate_series(1, 5);
      insert into figure_deltas (kind, owner_id, key, delta) values ('product_version', 1, '1.0.1', -5);
      insert into audit_log (public_id, at, actor_kind, actor_key_id, actor_name, action, subject_id)
        select gen_random_uuid(), now() - n * interval '1 minute', 'operator', gen_random_uuid(), 'filler', 'action.' || n % 28, 's' || n
        from generate_series(1, 50000) n;
      analyze;
    `);
  });
  afterAll(() => database.close());

  /** Everything that some work sends. */
  async function textsOf(work: (db: Database) => Promise<unknown>): Promise<string[]> {
    const texts = new Set<string>();
    await work(database.hooked({ before: async (text) => void texts.add(text) }));
    expect(texts.size).toBeGreaterThan(0);
    return [...texts];
  }

  const plansOf = async (work: (db: Database) => Promise<unknown>) =>
    Promise.all((await textsOf(work)).map(async (text) => `${text}\n${await planOf(database, text)}`));

  const id = "0197b1c0-0000-7000-8000-000000000001";
  const { sha256 } = artifactOf("none");
  it.each<[string, (db: Database) => Promise<unknown>, RegExp?]>([
    ["a product's figures", (db) => productFigures(db, { product })],
    ["a rollout's figures", (db) => rolloutFigures(db, { rolloutId })],
    [
      "a fold",
      (db) => db.transaction((tx) => foldFigures({ intervalMs: 1 }).runBatch({ tx, fence: undefined, position: null })),
    ],
    ["the audit log", (db) => listAudit(db, {})],
    ["the audit log of a subject", (db) => listAudit(db, { subjectId: "s1" }), /Index Cond: .*subject_id = /],
    ["the audit log of an actor", (db) => listAudit(db, { actor: id }), /Index Cond: .*actor_key_id = /],
    ["the audit log of the system", (db) => listAudit(db, { actor: "system" }), /Index Cond: .*actor_key_id IS NULL/],
    ["the audit log of an action", (db) => listAudit(db, { action: "rollout.stop" })],
    [
      "the audit log of a time",
      (db) => listAudit(db, { since: new Date("2020-01-01"), until: new Date("2020-02-01") }),
      /Index Cond: .*at >= /,
    ],
    ["a look for unreferenced files", (db) => unreferencedArtifacts(db, [sha256])],
    ["the deletion of a file", (db) => deleteUnreferencedArtifact(db, { sha256, remove: async () => "removed" })],
  ])("%s: rows are found by an index", async (_what, work, condition = /Index Cond/) => {
    const plans = await plansOf(work);
    expect(plans.filter((plan) => SCANNED.test(plan))).toEqual([]);
    // Walking all of an index and looking at each row is a scan as well.
    expect(plans.join("\n")).toMatch(condition);
  });

  it("the audit log of a rare action: whatever the number of others, they are not looked at", async () => {
    const [text = ""] = await textsOf((db) => listAudit(db, { action: "rollout.stop" }));
    // A common one is found quickest from the newest on: so the plan is made for the very action.
    const values = ["9223372036854775807", "'rollout.stop'", "51"];
    const asked = values.reduce((query, value, index) => query.replace(`$${index + 1}`, value), text);
    const plan = (await database.query(`explain ${asked}`)).map((row) => row["QUERY PLAN"]).join("\n");
    expect(plan).toMatch(/Index Cond: .*action = /);
  });
});
