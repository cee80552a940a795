import { and, eq, type SQL, sql } from "drizzle-orm";
import { figures } from "../schema/index.ts";
import type { BackgroundJob } from "../sweeper/background-job.ts";

/** Deltas of one transaction. */
const BATCH = 10_000;

/**
 * Folds deltas into the figures: as many as are taken are added, in one statement, so that the sum of both is the same at
 * any moment. It takes whatever deltas it sees, in no order: one whose transaction commits late is taken later. Deltas
 * that another process is folding are left to that one. Figures that have come to nothing are deleted.
 */
export function foldFigures({ intervalMs }: { readonly intervalMs: number }): BackgroundJob {
  return {
    name: "fold-figures",
    intervalMs,
    everyday: true,
    async runBatch({ tx }) {
      const taken = tx.$with("taken", {}).as(sql`
        delete from figure_deltas where ctid = any (array(
          select ctid from figure_deltas
          order by kind, owner_id, id limit ${sql.raw(String(BATCH))} for update skip locked
        )) returning kind, owner_id, key, delta
      `);
      const summed = tx.$with("summed", {}).as(sql`
        select kind, owner_id, key, sum(delta) as delta from taken group by kind, owner_id, key having sum(delta) <> 0
      `);
      // In the order of their keys: two processes that fold at once meet in one order.
      const folded = tx.$with("folded", {}).as(sql`
        insert into figures (kind, owner_id, key, count) select kind, owner_id, key, delta from summed
        order by kind, owner_id, key
        on conflict (kind, owner_id, key) do update set count = figures.count + excluded.count
        returning kind, owner_id, key, count
      `);
      const [row] = await tx
        .with(taken, summed, folded)
        .select({
          taken: sql<number>`count(*)::integer`,
          gone: sql<object[] | null>`(
            select json_agg(json_build_object('kind', kind, 'owner_id', owner_id::text, 'key', key))
            from folded where count = 0
          )`,
        })
        .from(sql`taken`);
      const { taken: rows = 0, gone = null } = row ?? {};
      if (gone !== null) await tx.delete(figures).where(and(eq(figures.count, 0), isAmong(gone)));
      return { more: rows === BATCH, rows };
    },
  };
}

/** One parameter for any number of keys, so that the driver prepares the statement once. */
function isAmong(keys: readonly object[]): SQL {
  return sql`(${figures.kind}, ${figures.ownerId}, ${figures.key}) in (
    select kind, owner_id, key
    from json_to_recordset(${JSON.stringify(keys)}::json) as gone(kind text, owner_id bigint, key text)
  )`;
}
