CREATE TABLE "attempt_events" (
	"attempt_id" integer NOT NULL,
	"seq" integer NOT NULL,
	"reported_state" text,
	"from_state" text,
	"to_state" text NOT NULL,
	"reported_version" text,
	"progress_percent" smallint,
	"message" text,
	"details" text[] DEFAULT '{}' NOT NULL,
	"code" integer,
	"device_time" timestamp (3) with time zone,
	"received_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "attempt_events_pkey" PRIMARY KEY("attempt_id","seq"),
	CONSTRAINT "attempt_events_seq_check" CHECK ("attempt_events"."seq" > 0),
	CONSTRAINT "attempt_events_reported_state_check" CHECK ("attempt_events"."reported_state" in ('confirmed', 'denied', 'downloading', 'downloaded', 'installing', 'installed', 'succeeded', 'failed', 'cancelled', 'cancel_rejected')),
	CONSTRAINT "attempt_events_from_state_check" CHECK ("attempt_events"."from_state" in ('awaiting_confirmation', 'offered', 'downloading', 'downloaded', 'installing', 'installed', 'cancelling', 'succeeded', 'failed', 'cancelled', 'timed_out', 'superseded')),
	CONSTRAINT "attempt_events_to_state_check" CHECK ("attempt_events"."to_state" in ('awaiting_confirmation', 'offered', 'downloading', 'downloaded', 'installing', 'installed', 'cancelling', 'succeeded', 'failed', 'cancelled', 'timed_out', 'superseded')),
	CONSTRAINT "attempt_events_progress_percent_check" CHECK ("attempt_events"."progress_percent" between 0 and 100)
);
--> statement-breakpoint
CREATE TABLE "audit_log" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "audit_log_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"public_id" uuid NOT NULL,
	"at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"actor_kind" text NOT NULL,
	"actor_key_id" uuid,
	"actor_name" text,
	"action" text NOT NULL,
	"subject_id" text NOT NULL,
	"before" jsonb,
	"after" jsonb,
	CONSTRAINT "audit_log_actor_kind_check" CHECK ("audit_log"."actor_kind" in ('operator', 'system'))
);
--> statement-breakpoint
CREATE TABLE "devices" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "devices_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"public_id" uuid NOT NULL,
	"product_id" bigint NOT NULL,
	"serial" text NOT NULL,
	"token_hash" "bytea" NOT NULL,
	"channel" text NOT NULL,
	"hardware_revision" text,
	"reported_version" text,
	"confirmed_version" text,
	"blocked" boolean DEFAULT false NOT NULL,
	"last_seen_at" timestamp (3) with time zone,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "devices_public_id_unique" UNIQUE("public_id"),
	CONSTRAINT "devices_token_hash_unique" UNIQUE("token_hash"),
	CONSTRAINT "devices_serial_product_id_unique" UNIQUE("serial","product_id"),
	CONSTRAINT "devices_token_hash_check" CHECK (octet_length("devices"."token_hash") = 32)
);
--> statement-breakpoint
CREATE TABLE "firmware" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "firmware_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"public_id" uuid NOT NULL,
	"product_id" bigint NOT NULL,
	"version" text NOT NULL,
	"canonical_version" text NOT NULL,
	"state" text DEFAULT 'draft' NOT NULL,
	"hardware_revisions" text[] DEFAULT '{}' NOT NULL,
	"requires_version" text,
	"size_bytes" bigint NOT NULL,
	"sha256" text NOT NULL,
	"sha1" text NOT NULL,
	"md5" text NOT NULL,
	"file_name" text NOT NULL,
	"content_type" text NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"released_at" timestamp (3) with time zone,
	"withdrawn_at" timestamp (3) with time zone,
	CONSTRAINT "firmware_public_id_unique" UNIQUE("public_id"),
	CONSTRAINT "firmware_product_id_canonical_version_unique" UNIQUE("product_id","canonical_version"),
	CONSTRAINT "firmware_state_check" CHECK ("firmware"."state" in ('draft', 'released', 'withdrawn')),
	CONSTRAINT "firmware_size_bytes_check" CHECK ("firmware"."size_bytes" > 0),
	CONSTRAINT "firmware_sha256_check" CHECK ("firmware"."sha256" ~ '^[0-9a-f]{64}$'),
	CONSTRAINT "firmware_sha1_check" CHECK ("firmware"."sha1" ~ '^[0-9a-f]{40}$'),
	CONSTRAINT "firmware_md5_check" CHECK ("firmware"."md5" ~ '^[0-9a-f]{32}$')
);
--> statement-breakpoint
CREATE TABLE "installation" (
	"only" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"public_id" uuid NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "installation_only_check" CHECK ("installation"."only")
);
--> statement-breakpoint
CREATE TABLE "operator_keys" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "operator_keys_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"public_id" uuid NOT NULL,
	"name" text NOT NULL,
	"key_hash" "bytea" NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"revoked_at" timestamp (3) with time zone,
	CONSTRAINT "operator_keys_public_id_unique" UNIQUE("public_id"),
	CONSTRAINT "operator_keys_key_hash_unique" UNIQUE("key_hash"),
	CONSTRAINT "operator_keys_key_hash_check" CHECK (octet_length("operator_keys"."key_hash") = 32)
);
--> statement-breakpoint
CREATE TABLE "products" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "products_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"name" text NOT NULL,
	"version_scheme" text NOT NULL,
	"confirm_by" text NOT NULL,
	"poll_interval_seconds" integer NOT NULL,
	"catalog_revision" bigint DEFAULT 0 NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "products_name_unique" UNIQUE("name"),
	CONSTRAINT "products_name_check" CHECK ("products"."name" ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
	CONSTRAINT "products_version_scheme_check" CHECK ("products"."version_scheme" in ('semver', 'dotted')),
	CONSTRAINT "products_confirm_by_check" CHECK ("products"."confirm_by" in ('report', 'version')),
	CONSTRAINT "products_poll_interval_seconds_check" CHECK ("products"."poll_interval_seconds" between 30 and 86399)
);
--> statement-breakpoint
CREATE TABLE "rollouts" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "rollouts_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"public_id" uuid NOT NULL,
	"firmware_id" bigint NOT NULL,
	"channel" text NOT NULL,
	"state" text NOT NULL,
	"priority" integer DEFAULT 0 NOT NULL,
	"percentage_basis_points" integer DEFAULT 10000 NOT NULL,
	"allow_downgrade" boolean DEFAULT false NOT NULL,
	"requires_confirmation" boolean DEFAULT false NOT NULL,
	"revision" bigint DEFAULT 1 NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "rollouts_public_id_unique" UNIQUE("public_id"),
	CONSTRAINT "rollouts_state_check" CHECK ("rollouts"."state" in ('draft', 'running', 'paused', 'finished', 'stopped')),
	CONSTRAINT "rollouts_percentage_basis_points_check" CHECK ("rollouts"."percentage_basis_points" between 0 and 10000)
);
--> statement-breakpoint
CREATE TABLE "upgrade_attempts" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "upgrade_attempts_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"upgrade_id" bigint NOT NULL,
	"device_id" bigint NOT NULL,
	"firmware_id" bigint NOT NULL,
	"rollout_id" bigint NOT NULL,
	"n" integer NOT NULL,
	"state" text NOT NULL,
	"cancel_outcome" text,
	"last_seq" integer DEFAULT 0 NOT NULL,
	"failure_code" integer,
	"failure_message" text,
	"opened_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"closed_at" timestamp (3) with time zone,
	"deadline_at" timestamp (3) with time zone,
	CONSTRAINT "upgrade_attempts_upgrade_id_n_unique" UNIQUE("upgrade_id","n"),
	CONSTRAINT "upgrade_attempts_id_check" CHECK ("upgrade_attempts"."id" > 0),
	CONSTRAINT "upgrade_attempts_n_check" CHECK ("upgrade_attempts"."n" > 0),
	CONSTRAINT "upgrade_attempts_state_check" CHECK ("upgrade_attempts"."state" in ('awaiting_confirmation', 'offered', 'downloading', 'downloaded', 'installing', 'installed', 'cancelling', 'succeeded', 'failed', 'cancelled', 'timed_out', 'superseded')),
	CONSTRAINT "upgrade_attempts_cancel_outcome_check" CHECK ("upgrade_attempts"."cancel_outcome" in ('cancelled', 'superseded')),
	CONSTRAINT "upgrade_attempts_closed_at_check" CHECK (("upgrade_attempts"."closed_at" is not null) = ("upgrade_attempts"."state" in ('succeeded', 'failed', 'cancelled', 'timed_out', 'superseded')))
);
--> statement-breakpoint
CREATE TABLE "upgrades" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "upgrades_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"public_id" uuid NOT NULL,
	"device_id" bigint NOT NULL,
	"firmware_id" bigint NOT NULL,
	"rollout_id" bigint NOT NULL,
	"from_version" text,
	"attempts_forgiven" integer DEFAULT 0 NOT NULL,
	"created_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "upgrades_public_id_unique" UNIQUE("public_id"),
	CONSTRAINT "upgrades_device_id_firmware_id_unique" UNIQUE("device_id","firmware_id")
);
--> statement-breakpoint
ALTER TABLE "attempt_events" ADD CONSTRAINT "attempt_events_attempt_id_upgrade_attempts_id_fk" FOREIGN KEY ("attempt_id") REFERENCES "public"."upgrade_attempts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "devices" ADD CONSTRAINT "devices_product_id_products_id_fk" FOREIGN KEY ("product_id") REFERENCES "public"."products"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "firmware" ADD CONSTRAINT "firmware_product_id_products_id_fk" FOREIGN KEY ("product_id") REFERENCES "public"."products"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "rollouts" ADD CONSTRAINT "rollouts_firmware_id_firmware_id_fk" FOREIGN KEY ("firmware_id") REFERENCES "public"."firmware"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "upgrade_attempts" ADD CONSTRAINT "upgrade_attempts_upgrade_id_upgrades_id_fk" FOREIGN KEY ("upgrade_id") REFERENCES "public"."upgrades"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "upgrade_attempts" ADD CONSTRAINT "upgrade_attempts_device_id_devices_id_fk" FOREIGN KEY ("device_id") REFERENCES "public"."devices"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "upgrade_attempts" ADD CONSTRAINT "upgrade_attempts_firmware_id_firmware_id_fk" FOREIGN KEY ("firmware_id") REFERENCES "public"."firmware"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "upgrade_attempts" ADD CONSTRAINT "upgrade_attempts_rollout_id_rollouts_id_fk" FOREIGN KEY ("rollout_id") REFERENCES "public"."rollouts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "upgrades" ADD CONSTRAINT "upgrades_device_id_devices_id_fk" FOREIGN KEY ("device_id") REFERENCES "public"."devices"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "upgrades" ADD CONSTRAINT "upgrades_firmware_id_firmware_id_fk" FOREIGN KEY ("firmware_id") REFERENCES "public"."firmware"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "upgrades" ADD CONSTRAINT "upgrades_rollout_id_rollouts_id_fk" FOREIGN KEY ("rollout_id") REFERENCES "public"."rollouts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "audit_log_subject_id_id_index" ON "audit_log" USING btree ("subject_id","id");--> statement-breakpoint
CREATE INDEX "devices_product_id_id_index" ON "devices" USING btree ("product_id","id");--> statement-breakpoint
CREATE INDEX "firmware_product_id_id_index" ON "firmware" USING btree ("product_id","id");--> statement-breakpoint
CREATE INDEX "rollouts_firmware_id_id_index" ON "rollouts" USING btree ("firmware_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "upgrade_attempts_live_device_id_unique" ON "upgrade_attempts" USING btree ("device_id") WHERE "upgrade_attempts"."state" in ('awaiting_confirmation', 'offered', 'downloading', 'downloaded', 'installing', 'installed', 'cancelling');--> statement-breakpoint
CREATE INDEX "upgrade_attempts_live_deadline_at_index" ON "upgrade_attempts" USING btree ("deadline_at","id") WHERE "upgrade_attempts"."state" in ('awaiting_confirmation', 'offered', 'downloading', 'downloaded', 'installing', 'installed', 'cancelling');--> statement-breakpoint
CREATE INDEX "upgrade_attempts_firmware_id_state_upgrade_id_index" ON "upgrade_attempts" USING btree ("firmware_id","state","upgrade_id");--> statement-breakpoint
CREATE INDEX "upgrade_attempts_state_upgrade_id_index" ON "upgrade_attempts" USING btree ("state","upgrade_id");--> statement-breakpoint
CREATE INDEX "upgrades_device_id_id_index" ON "upgrades" USING btree ("device_id","id");--> statement-breakpoint
CREATE INDEX "upgrades_firmware_id_id_index" ON "upgrades" USING btree ("firmware_id","id");