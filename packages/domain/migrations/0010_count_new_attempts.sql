-- Written by hand: drizzle-kit makes no triggers.

-- Once for the statement, so that the attempts which checks open together are one delta for each state of a rollout.
CREATE FUNCTION "public"."count_new_attempts"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO "public"."figure_deltas" (kind, owner_id, key, delta)
		SELECT 'rollout_state', rollout_id, state, count(*) FROM added GROUP BY rollout_id, state
		UNION ALL
		SELECT 'rollout_step_state', added.rollout_id, added.firmware_id || ':' || added.state, count(*)
			FROM added JOIN "public"."rollouts" ON rollouts.id = added.rollout_id AND rollouts.firmware_id <> added.firmware_id
			GROUP BY added.rollout_id, added.firmware_id, added.state
		UNION ALL
		SELECT 'rollout_failure', rollout_id, "public"."failure_figure_key"(ROW(added.*)::"public"."upgrade_attempts"), count(*)
			FROM added WHERE state IN ('failed', 'timed_out') GROUP BY 2, 3;
	RETURN NULL;
END
$$;
--> statement-breakpoint
-- Replaced and not dropped, which nobody could read the table for.
CREATE OR REPLACE TRIGGER "upgrade_attempts_count_insert_trigger" AFTER INSERT ON "upgrade_attempts"
	REFERENCING NEW TABLE AS added
	FOR EACH STATEMENT EXECUTE FUNCTION "public"."count_new_attempts"();
