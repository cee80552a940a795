import { expect, it } from "vitest";
import { casesOn } from "../support/databases.ts";
import { createFleet, startChecks } from "../support/fleet.ts";

export const badNeighbourCases = casesOn("a device for which nothing can be opened", (database) => {
  it.each([{}, { maxConcurrent: 100 }])(
    "keeps nobody from an attempt who asks with it, each time: %j",
    async (terms) => {
      const { db, query } = database();
      const fleet = await createFleet(db);
      await fleet.release("1.0.0", { startRollout: false });
      const { id } = await fleet.rollout("1.0.0", { ...terms, backoffSeconds: 0 });
      const [bad, ...others] = await Promise.all(Array.from({ length: 32 }, () => fleet.device()));
      // A record without an attempt, as no check leaves it behind: none sees it, and nobody can make another.
      await query(`
      insert into upgrades (public_id, device_id, firmware_id, rollout_id)
      select gen_random_uuid(), d.id, r.firmware_id, r.id from devices d, rollouts r
      where d.public_id = '${bad?.id}' and r.public_id = '${id}'
    `);
      const checks = startChecks(db);
      for (const number of [1, 2]) {
        const [first, ...rest] = await Promise.allSettled(
          [bad, ...others].map((device) => checks.checkForUpdate({ tokenHash: device?.tokenHash as Buffer })),
        );
        expect(first).toMatchObject({ status: "rejected", reason: { code: "SERVICE_BUSY" } });
        expect(rest).toMatchObject(others.map(() => ({ value: { how: "created", attempt: { number } } })));
        const own = `rollout_id = (select id from rollouts where public_id = '${id}')`;
        expect(await query(`select live from rollout_counters where ${own}`)).toMatchObject(
          "maxConcurrent" in terms ? [{ live: others.length }] : [],
        );
        await query(
          `update upgrade_attempts set state = 'failed', closed_at = now() where closed_at is null and ${own}`,
        );
        await query(`update rollout_counters set live = 0 where ${own}`);
      }
    },
  );
});
