ALTER TABLE "devices" ADD COLUMN "attributes_told_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "devices" ADD COLUMN "auto_confirm" jsonb;--> statement-breakpoint
ALTER TABLE "products" ADD COLUMN "hardware_attribute" text;--> statement-breakpoint
ALTER TABLE "products" ADD COLUMN "version_attribute" text;