-- Written by hand: drizzle-kit makes no triggers, storage parameters or data.

-- The audit log: rows are only ever added. Whoever owns the table can still disable this, but not by mistake.
CREATE FUNCTION "public"."refuse_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'Rows of % are only ever added: % is refused.', TG_TABLE_NAME, TG_OP
		USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
END
$$;
--> statement-breakpoint
CREATE TRIGGER "audit_log_append_only_trigger" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_log"
	FOR EACH STATEMENT EXECUTE FUNCTION "public"."refuse_change"();
--> statement-breakpoint

-- What a failure is counted under. Digits are masked in the message, so that a reason is one, whatever address it names.
CREATE FUNCTION "public"."failure_figure_key"(attempt "public"."upgrade_attempts") RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT attempt.state || ':' || coalesce(attempt.failure_code::text, '') || ':'
		|| left(regexp_replace(coalesce(attempt.failure_message, ''), '[0-9]+', '#', 'g'), 200)
$$;
--> statement-breakpoint
CREATE FUNCTION "public"."count_attempt"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP <> 'INSERT' THEN
		INSERT INTO "public"."figure_deltas" (kind, owner_id, key, delta)
			VALUES ('rollout_state', OLD.rollout_id, OLD.state, -1);
		IF OLD.state IN ('failed', 'timed_out') THEN
			INSERT INTO "public"."figure_deltas" (kind, owner_id, key, delta)
				VALUES ('rollout_failure', OLD.rollout_id, "public"."failure_figure_key"(OLD), -1);
		END IF;
	END IF;
	IF TG_OP <> 'DELETE' THEN
		INSERT INTO "public"."figure_deltas" (kind, owner_id, key, delta)
			VALUES ('rollout_state', NEW.rollout_id, NEW.state, 1);
		IF NEW.state IN ('failed', 'timed_out') THEN
			INSERT INTO "public"."figure_deltas" (kind, owner_id, key, delta)
				VALUES ('rollout_failure', NEW.rollout_id, "public"."failure_figure_key"(NEW), 1);
		END IF;
	END IF;
	RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER "upgrade_attempts_count_insert_trigger" AFTER INSERT ON "upgrade_attempts"
	FOR EACH ROW EXECUTE FUNCTION "public"."count_attempt"();
--> statement-breakpoint
CREATE TRIGGER "upgrade_attempts_count_update_trigger"
	AFTER UPDATE OF "state", "rollout_id", "failure_code", "failure_message" ON "upgrade_attempts"
	FOR EACH ROW WHEN (
		(OLD.state, OLD.rollout_id, OLD.failure_code, OLD.failure_message)
			IS DISTINCT FROM (NEW.state, NEW.rollout_id, NEW.failure_code, NEW.failure_message)
	) EXECUTE FUNCTION "public"."count_attempt"();
--> statement-breakpoint
CREATE TRIGGER "upgrade_attempts_count_delete_trigger" AFTER DELETE ON "upgrade_attempts"
	FOR EACH ROW EXECUTE FUNCTION "public"."count_attempt"();
--> statement-breakpoint

-- Once for the statement, so that ten thousand devices that are registered together are one delta for each version.
CREATE FUNCTION "public"."count_devices"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO "public"."figure_deltas" (kind, owner_id, key, delta)
		SELECT 'product_version', product_id, coalesce(reported_version, confirmed_version, ''),
			CASE TG_OP WHEN 'INSERT' THEN count(*) ELSE -count(*) END
		FROM changed GROUP BY product_id, coalesce(reported_version, confirmed_version, '');
	RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER "devices_count_insert_trigger" AFTER INSERT ON "devices" REFERENCING NEW TABLE AS changed
	FOR EACH STATEMENT EXECUTE FUNCTION "public"."count_devices"();
--> statement-breakpoint
CREATE TRIGGER "devices_count_delete_trigger" AFTER DELETE ON "devices" REFERENCING OLD TABLE AS changed
	FOR EACH STATEMENT EXECUTE FUNCTION "public"."count_devices"();
--> statement-breakpoint
-- Once for the row: a trigger for the statement cannot be bound to columns, and would run with each flush of last seen.
CREATE FUNCTION "public"."count_device_version"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO "public"."figure_deltas" (kind, owner_id, key, delta) VALUES
		('product_version', OLD.product_id, coalesce(OLD.reported_version, OLD.confirmed_version, ''), -1),
		('product_version', NEW.product_id, coalesce(NEW.reported_version, NEW.confirmed_version, ''), 1);
	RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER "devices_count_update_trigger"
	AFTER UPDATE OF "product_id", "reported_version", "confirmed_version" ON "devices"
	FOR EACH ROW WHEN (
		(OLD.product_id, coalesce(OLD.reported_version, OLD.confirmed_version))
			IS DISTINCT FROM (NEW.product_id, coalesce(NEW.reported_version, NEW.confirmed_version))
	) EXECUTE FUNCTION "public"."count_device_version"();
--> statement-breakpoint

-- What is there already. Nobody can write meanwhile: creating the triggers has locked both tables against it.
INSERT INTO "figures" (kind, owner_id, key, count)
	SELECT 'rollout_state', rollout_id, state, count(*) FROM "upgrade_attempts" GROUP BY rollout_id, state;
--> statement-breakpoint
INSERT INTO "figures" (kind, owner_id, key, count)
	SELECT 'rollout_failure', rollout_id, "public"."failure_figure_key"(attempt), count(*)
	FROM "upgrade_attempts" attempt WHERE state IN ('failed', 'timed_out') GROUP BY 2, 3;
--> statement-breakpoint
INSERT INTO "figures" (kind, owner_id, key, count)
	SELECT 'product_version', product_id, coalesce(reported_version, confirmed_version, ''), count(*)
	FROM "devices" GROUP BY 2, 3;
--> statement-breakpoint

-- Room in the page for rows that are updated often, so that their updates need no new index entries.
ALTER TABLE "rollout_counters" SET (fillfactor = 20);
--> statement-breakpoint
ALTER TABLE "figures" SET (fillfactor = 50);
--> statement-breakpoint
ALTER TABLE "devices" SET (fillfactor = 90);
