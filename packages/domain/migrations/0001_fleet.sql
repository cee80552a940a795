CREATE TABLE "background_jobs" (
	"name" text PRIMARY KEY NOT NULL,
	"fence" bigint,
	"position" jsonb,
	"ran_at" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE TABLE "figure_deltas" (
	"kind" text NOT NULL,
	"owner_id" bigint NOT NULL,
	"key" text NOT NULL,
	"id" bigint GENERATED ALWAYS AS IDENTITY (sequence name "figure_deltas_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"delta" integer NOT NULL,
	CONSTRAINT "figure_deltas_pkey" PRIMARY KEY("kind","owner_id","id"),
	CONSTRAINT "figure_deltas_delta_check" CHECK ("figure_deltas"."delta" <> 0)
);
--> statement-breakpoint
CREATE TABLE "figures" (
	"kind" text NOT NULL,
	"owner_id" bigint NOT NULL,
	"key" text NOT NULL,
	"count" bigint NOT NULL,
	CONSTRAINT "figures_pkey" PRIMARY KEY("kind","owner_id","key"),
	CONSTRAINT "figures_kind_check" CHECK ("figures"."kind" in ('rollout_state', 'rollout_failure', 'product_version'))
);
--> statement-breakpoint
CREATE TABLE "gateway_tokens" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "gateway_tokens_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"public_id" uuid NOT NULL,
	"product_id" bigint NOT NULL,
	"channel" text NOT NULL,
	"name" text NOT NULL,
	"token_hash" "bytea" NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"revoked_at" timestamp (3) with time zone,
	CONSTRAINT "gateway_tokens_public_id_unique" UNIQUE("public_id"),
	CONSTRAINT "gateway_tokens_token_hash_unique" UNIQUE("token_hash"),
	CONSTRAINT "gateway_tokens_token_hash_check" CHECK (octet_length("gateway_tokens"."token_hash") = 32)
);
--> statement-breakpoint
CREATE TABLE "rollout_counters" (
	"rollout_id" bigint PRIMARY KEY NOT NULL,
	"revision" bigint NOT NULL,
	"live" integer DEFAULT 0 NOT NULL,
	"granted" integer DEFAULT 0 NOT NULL,
	"succeeded" integer DEFAULT 0 NOT NULL,
	"failed" integer DEFAULT 0 NOT NULL,
	"succeeded_before" integer DEFAULT 0 NOT NULL,
	"failed_before" integer DEFAULT 0 NOT NULL,
	"reached" text,
	"reached_at" timestamp (3) with time zone,
	CONSTRAINT "rollout_counters_live_check" CHECK ("rollout_counters"."live" >= 0),
	CONSTRAINT "rollout_counters_granted_check" CHECK ("rollout_counters"."granted" >= 0),
	CONSTRAINT "rollout_counters_succeeded_check" CHECK ("rollout_counters"."succeeded" >= 0),
	CONSTRAINT "rollout_counters_failed_check" CHECK ("rollout_counters"."failed" >= 0),
	CONSTRAINT "rollout_counters_reached_check" CHECK ("rollout_counters"."reached" in ('success_threshold', 'error_threshold')),
	CONSTRAINT "rollout_counters_reached_at_check" CHECK (("rollout_counters"."reached" is null) = ("rollout_counters"."reached_at" is null))
);
--> statement-breakpoint
CREATE TABLE "rollout_devices" (
	"rollout_id" bigint NOT NULL,
	"device_id" bigint NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "rollout_devices_pkey" PRIMARY KEY("device_id","rollout_id")
);
--> statement-breakpoint
ALTER TABLE "upgrade_attempts" DROP CONSTRAINT "upgrade_attempts_device_id_devices_id_fk";
--> statement-breakpoint
ALTER TABLE "devices" ALTER COLUMN "token_hash" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "firmware" ALTER COLUMN "sha1" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "firmware" ALTER COLUMN "md5" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "devices" ADD COLUMN "previous_token_hash" "bytea";--> statement-breakpoint
ALTER TABLE "devices" ADD COLUMN "previous_token_valid_until" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "devices" ADD COLUMN "groups" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "devices" ADD COLUMN "attributes" jsonb DEFAULT '{}'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "devices" ADD COLUMN "time_zone" text;--> statement-breakpoint
ALTER TABLE "devices" ADD COLUMN "blocked_reason" text;--> statement-breakpoint
ALTER TABLE "devices" ADD COLUMN "registered_by" text DEFAULT 'operator' NOT NULL;--> statement-breakpoint
ALTER TABLE "firmware" ADD COLUMN "source_url" text;--> statement-breakpoint
ALTER TABLE "firmware" ADD COLUMN "signature" "bytea";--> statement-breakpoint
ALTER TABLE "firmware" ADD COLUMN "signature_key" "bytea";--> statement-breakpoint
ALTER TABLE "products" ADD COLUMN "time_zone" text DEFAULT 'UTC' NOT NULL;--> statement-breakpoint
ALTER TABLE "products" ADD COLUMN "max_attempts" smallint DEFAULT 3 NOT NULL;--> statement-breakpoint
ALTER TABLE "products" ADD COLUMN "backoff_seconds" integer DEFAULT 600 NOT NULL;--> statement-breakpoint
ALTER TABLE "products" ADD COLUMN "timeouts_seconds" jsonb DEFAULT '{}'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "products" ADD COLUMN "signing_public_key" "bytea";--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "groups" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "attribute_filter" jsonb;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "hardware_revisions" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "max_concurrent" integer;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "max_total" integer;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "success_threshold" integer;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "error_threshold_basis_points" integer;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "error_threshold_min_outcomes" integer DEFAULT 10 NOT NULL;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "phases" jsonb DEFAULT '[]'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "phase_index" smallint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "window_days" smallint[];--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "window_from_minute" smallint;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "window_to_minute" smallint;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "max_attempts" smallint;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "backoff_seconds" integer;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "timeouts_seconds" jsonb DEFAULT '{}'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "paused_by" text;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "started_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "rollouts" ADD COLUMN "ended_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "upgrade_attempts" ADD COLUMN "fence" bigint;--> statement-breakpoint
ALTER TABLE "gateway_tokens" ADD CONSTRAINT "gateway_tokens_product_id_products_id_fk" FOREIGN KEY ("product_id") REFERENCES "public"."products"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "rollout_counters" ADD CONSTRAINT "rollout_counters_rollout_id_rollouts_id_fk" FOREIGN KEY ("rollout_id") REFERENCES "public"."rollouts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "rollout_devices" ADD CONSTRAINT "rollout_devices_rollout_id_rollouts_id_fk" FOREIGN KEY ("rollout_id") REFERENCES "public"."rollouts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "rollout_devices" ADD CONSTRAINT "rollout_devices_device_id_devices_id_fk" FOREIGN KEY ("device_id") REFERENCES "public"."devices"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "gateway_tokens_product_id_id_index" ON "gateway_tokens" USING btree ("product_id","id");--> statement-breakpoint
CREATE INDEX "rollout_devices_rollout_id_device_id_index" ON "rollout_devices" USING btree ("rollout_id","device_id");--> statement-breakpoint
CREATE UNIQUE INDEX "devices_previous_token_hash_unique" ON "devices" USING btree ("previous_token_hash") WHERE "devices"."previous_token_hash" is not null;--> statement-breakpoint
CREATE INDEX "devices_product_id_serial_c_index" ON "devices" USING btree ("product_id",("serial" collate "C"));--> statement-breakpoint
CREATE INDEX "devices_product_id_version_id_index" ON "devices" USING btree ("product_id",coalesce("reported_version", "confirmed_version"),"id");--> statement-breakpoint
CREATE INDEX "devices_groups_index" ON "devices" USING gin ("groups");--> statement-breakpoint
CREATE INDEX "devices_attributes_index" ON "devices" USING gin ("attributes" jsonb_path_ops);--> statement-breakpoint
CREATE INDEX "firmware_sha256_index" ON "firmware" USING btree ("sha256");--> statement-breakpoint
CREATE INDEX "upgrade_attempts_rollout_id_state_upgrade_id_index" ON "upgrade_attempts" USING btree ("rollout_id","state","upgrade_id");--> statement-breakpoint
CREATE INDEX "upgrade_attempts_closed_at_id_index" ON "upgrade_attempts" USING btree ("closed_at","id") WHERE "upgrade_attempts"."closed_at" is not null;--> statement-breakpoint
CREATE INDEX "upgrades_rollout_id_id_index" ON "upgrades" USING btree ("rollout_id","id");--> statement-breakpoint
ALTER TABLE "devices" ADD CONSTRAINT "devices_previous_token_hash_check" CHECK (octet_length("devices"."previous_token_hash") = 32);--> statement-breakpoint
ALTER TABLE "devices" ADD CONSTRAINT "devices_previous_token_valid_until_check" CHECK (("devices"."previous_token_hash" is null) = ("devices"."previous_token_valid_until" is null));--> statement-breakpoint
ALTER TABLE "devices" ADD CONSTRAINT "devices_attributes_check" CHECK (jsonb_typeof("devices"."attributes") = 'object');--> statement-breakpoint
ALTER TABLE "devices" ADD CONSTRAINT "devices_registered_by_check" CHECK ("devices"."registered_by" in ('operator', 'bulk', 'gateway'));--> statement-breakpoint
ALTER TABLE "firmware" ADD CONSTRAINT "firmware_stored_hashes_check" CHECK ("firmware"."source_url" is not null or ("firmware"."sha1" is not null and "firmware"."md5" is not null));--> statement-breakpoint
ALTER TABLE "firmware" ADD CONSTRAINT "firmware_signature_check" CHECK (octet_length("firmware"."signature") = 64);--> statement-breakpoint
ALTER TABLE "firmware" ADD CONSTRAINT "firmware_signature_key_check" CHECK (octet_length("firmware"."signature_key") = 32);--> statement-breakpoint
ALTER TABLE "firmware" ADD CONSTRAINT "firmware_signature_signature_key_check" CHECK (("firmware"."signature" is null) = ("firmware"."signature_key" is null));--> statement-breakpoint
ALTER TABLE "products" ADD CONSTRAINT "products_max_attempts_check" CHECK ("products"."max_attempts" > 0);--> statement-breakpoint
ALTER TABLE "products" ADD CONSTRAINT "products_backoff_seconds_check" CHECK ("products"."backoff_seconds" >= 0);--> statement-breakpoint
ALTER TABLE "products" ADD CONSTRAINT "products_timeouts_seconds_check" CHECK (jsonb_typeof("products"."timeouts_seconds") = 'object');--> statement-breakpoint
ALTER TABLE "products" ADD CONSTRAINT "products_signing_public_key_check" CHECK (octet_length("products"."signing_public_key") = 32);--> statement-breakpoint
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_max_concurrent_check" CHECK ("rollouts"."max_concurrent" > 0);--> statement-breakpoint
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_max_total_check" CHECK ("rollouts"."max_total" > 0);--> statement-breakpoint
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_success_threshold_check" CHECK ("rollouts"."success_threshold" > 0);--> statement-breakpoint
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_error_threshold_basis_points_check" CHECK ("rollouts"."error_threshold_basis_points" between 1 and 10000);--> statement-breakpoint
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_error_threshold_min_outcomes_check" CHECK ("rollouts"."error_threshold_min_outcomes" > 0);--> statement-breakpoint
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_phase_index_check" CHECK (case when jsonb_typeof("rollouts"."phases") <> 'array' then false
        else "rollouts"."phase_index" between 0 and greatest(jsonb_array_length("rollouts"."phases") - 1, 0) end);--> statement-breakpoint
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_window_days_check" CHECK (cardinality("rollouts"."window_days") > 0 and "rollouts"."window_days" <@ '{1,2,3,4,5,6,7}');--> statement-breakpoint
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_window_from_minute_check" CHECK ("rollouts"."window_from_minute" between 0 and 1439);--> statement-breakpoint
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_window_to_minute_check" CHECK ("rollouts"."window_to_minute" between 0 and 1439);--> statement-breakpoint
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_window_check" CHECK (num_nulls("rollouts"."window_days", "rollouts"."window_from_minute", "rollouts"."window_to_minute") in (0, 3));--> statement-breakpoint
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_max_attempts_check" CHECK ("rollouts"."max_attempts" > 0);--> statement-breakpoint
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_backoff_seconds_check" CHECK ("rollouts"."backoff_seconds" >= 0);--> statement-breakpoint
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_timeouts_seconds_check" CHECK (jsonb_typeof("rollouts"."timeouts_seconds") = 'object');--> statement-breakpoint
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_paused_by_check" CHECK ("rollouts"."paused_by" in ('operator', 'success_threshold', 'error_threshold'));