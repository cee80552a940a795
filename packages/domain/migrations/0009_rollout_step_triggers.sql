-- Written by hand: drizzle-kit makes no triggers or data.

-- Steps are counted besides, not instead: what a rollout's own firmware has is the rest. So the many attempts on it write
-- what they wrote before, and the version before reads the same figures. A rollout's firmware never changes.
CREATE OR REPLACE FUNCTION "public"."count_attempt"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP <> 'INSERT' THEN
		INSERT INTO "public"."figure_deltas" (kind, owner_id, key, delta)
			VALUES ('rollout_state', OLD.rollout_id, OLD.state, -1);
		IF OLD.firmware_id <> (SELECT firmware_id FROM "public"."rollouts" WHERE id = OLD.rollout_id) THEN
			INSERT INTO "public"."figure_deltas" (kind, owner_id, key, delta)
				VALUES ('rollout_step_state', OLD.rollout_id, OLD.firmware_id || ':' || OLD.state, -1);
		END IF;
		IF OLD.state IN ('failed', 'timed_out') THEN
			INSERT INTO "public"."figure_deltas" (kind, owner_id, key, delta)
				VALUES ('rollout_failure', OLD.rollout_id, "public"."failure_figure_key"(OLD), -1);
		END IF;
	END IF;
	IF TG_OP <> 'DELETE' THEN
		INSERT INTO "public"."figure_deltas" (kind, owner_id, key, delta)
			VALUES ('rollout_state', NEW.rollout_id, NEW.state, 1);
		IF NEW.firmware_id <> (SELECT firmware_id FROM "public"."rollouts" WHERE id = NEW.rollout_id) THEN
			INSERT INTO "public"."figure_deltas" (kind, owner_id, key, delta)
				VALUES ('rollout_step_state', NEW.rollout_id, NEW.firmware_id || ':' || NEW.state, 1);
		END IF;
		IF NEW.state IN ('failed', 'timed_out') THEN
			INSERT INTO "public"."figure_deltas" (kind, owner_id, key, delta)
				VALUES ('rollout_failure', NEW.rollout_id, "public"."failure_figure_key"(NEW), 1);
		END IF;
	END IF;
	RETURN NULL;
END
$$;
--> statement-breakpoint
-- With `firmware_id`, by which attempts are counted now. It also locks the table until the migration ends, so that nobody
-- writes by the old function what the next statement does not see.
CREATE OR REPLACE TRIGGER "upgrade_attempts_count_update_trigger"
	AFTER UPDATE OF "state", "rollout_id", "firmware_id", "failure_code", "failure_message" ON "upgrade_attempts"
	FOR EACH ROW WHEN (
		(OLD.state, OLD.rollout_id, OLD.firmware_id, OLD.failure_code, OLD.failure_message)
			IS DISTINCT FROM (NEW.state, NEW.rollout_id, NEW.firmware_id, NEW.failure_code, NEW.failure_message)
	) EXECUTE FUNCTION "public"."count_attempt"();
--> statement-breakpoint
INSERT INTO "figures" (kind, owner_id, key, count)
	SELECT 'rollout_step_state', rollouts.id, attempts.firmware_id || ':' || attempts.state, count(*)
	FROM "upgrade_attempts" attempts
	JOIN "rollouts" ON rollouts.id = attempts.rollout_id AND rollouts.firmware_id <> attempts.firmware_id
	GROUP BY rollouts.id, attempts.firmware_id, attempts.state;
