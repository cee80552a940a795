-- Written by hand: drizzle-kit makes no triggers.

-- The audit log is still only ever added to, but for the retention that operators ask for: its transaction says so by
-- `set_config('ota.audit_retention', 'on', true)`, which ends with it.
CREATE OR REPLACE FUNCTION "public"."refuse_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'DELETE' AND current_setting('ota.audit_retention', true) = 'on' THEN
		RETURN NULL;
	END IF;
	RAISE EXCEPTION 'Rows of % are only ever added: % is refused.', TG_TABLE_NAME, TG_OP
		USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
END
$$;
