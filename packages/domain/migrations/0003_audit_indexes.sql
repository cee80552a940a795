CREATE INDEX "audit_log_actor_key_id_id_index" ON "audit_log" USING btree ("actor_key_id","id");--> statement-breakpoint
CREATE INDEX "audit_log_action_id_index" ON "audit_log" USING btree ("action","id");--> statement-breakpoint
CREATE INDEX "audit_log_at_index" ON "audit_log" USING btree ("at");