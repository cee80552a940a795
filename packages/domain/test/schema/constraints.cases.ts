import { expect, it } from "vitest";
import { LIVE_ATTEMPT_STATES, schema, TERMINAL_ATTEMPT_STATES } from "../../src/index.ts";
import { anAttempt, setAttemptState } from "../support/attempts.ts";
import { casesOn, type TestDatabase } from "../support/databases.ts";
import { aDevice, aProduct, aReleasedFirmware, uniqueName } from "../support/records.ts";

/** The name of the constraint that the database refused a statement by. */
async function refusedBy(statement: PromiseLike<unknown>): Promise<string> {
  try {
    await statement;
    return "nothing";
  } catch (error) {
    const cause = (error as Error).cause as { constraint?: string; constraint_name?: string };
    return cause.constraint ?? cause.constraint_name ?? String(error);
  }
}

async function anUpgrade({ db }: TestDatabase, state: "offered" | "failed" = "failed") {
  const product = await aProduct(db);
  const firmware = await aReleasedFirmware(db, { product, version: "1.0.0" });
  const { device } = await aDevice(db, product);
  const pair = { deviceId: device.id, firmwareId: firmware.id };
  return { db, product, pair, ...(await anAttempt(db, { ...pair, state })) };
}

export const constraintCases = casesOn("the schema", (database) => {
  it("keeps one upgrade for a device and a firmware", async () => {
    const { db } = await anUpgrade(database());
    const [upgrade] = await db.select().from(schema.upgrades).limit(1);
    const { deviceId, firmwareId, rolloutId } = upgrade ?? expect.fail("no upgrade");
    const again = { deviceId, firmwareId, rolloutId, publicId: "01900000-0000-7000-8000-000000000000" };
    expect(await refusedBy(db.insert(schema.upgrades).values(again))).toBe("upgrades_device_id_firmware_id_unique");
  });

  it("keeps one live attempt for a device, in whatever live states and for whatever firmware", async () => {
    const { db, product, pair } = await anUpgrade(database(), "offered");
    const other = await aReleasedFirmware(db, { product, version: "1.1.0" });
    for (const state of LIVE_ATTEMPT_STATES) {
      for (const firmwareId of [pair.firmwareId, other.id]) {
        expect(await refusedBy(anAttempt(db, { ...pair, firmwareId, state }))).toBe(
          "upgrade_attempts_live_device_id_unique",
        );
      }
    }
  });

  it("allows the next attempt once the one before is closed", async () => {
    const { db, pair, attemptId } = await anUpgrade(database(), "offered");
    for (const state of TERMINAL_ATTEMPT_STATES) {
      await setAttemptState(db, { attemptId, state });
      const next = await anAttempt(db, { ...pair, state: "offered" });
      await setAttemptState(db, { attemptId: next.attemptId, state: "cancelled" });
    }
  });

  it("refuses a closed attempt without its time, and an open one with it", async () => {
    const { db, pair } = await anUpgrade(database());
    const { attemptId } = await anAttempt(db, { ...pair, state: "offered" });
    const [set, where] = ["update upgrade_attempts set", `where id = ${attemptId}`];
    const { query } = database();
    for (const change of ["state = 'failed'", "closed_at = now()"]) {
      await expect(query(`${set} ${change} ${where}`)).rejects.toThrow("upgrade_attempts_closed_at_check");
    }
  });

  it.each([
    ["products", "version_scheme = 'calver'", "products_version_scheme_check"],
    ["products", "confirm_by = ''", "products_confirm_by_check"],
    ["products", "name = 'A'", "products_name_check"],
    ["products", "poll_interval_seconds = 0", "products_poll_interval_seconds_check"],
    ["firmware", "state = 'live'", "firmware_state_check"],
    ["firmware", "sha256 = 'x'", "firmware_sha256_check"],
    ["firmware", "size_bytes = 0", "firmware_size_bytes_check"],
    ["rollouts", "state = 'started'", "rollouts_state_check"],
    ["rollouts", "percentage_basis_points = 10001", "rollouts_percentage_basis_points_check"],
    ["devices", "token_hash = 'short'", "devices_token_hash_check"],
    ["upgrade_attempts", "state = 'pending', closed_at = null", "upgrade_attempts_state_check"],
    ["upgrade_attempts", "cancel_outcome = 'failed'", "upgrade_attempts_cancel_outcome_check"],
    ["upgrade_attempts", "n = 0", "upgrade_attempts_n_check"],
    ["attempt_events", "reported_state = 'proceeding'", "attempt_events_reported_state_check"],
    ["attempt_events", "to_state = 'done'", "attempt_events_to_state_check"],
    ["attempt_events", "progress_percent = 101", "attempt_events_progress_percent_check"],
    ["products", "signing_public_key = 'short'", "products_signing_public_key_check"],
    ["products", "max_attempts = 0", "products_max_attempts_check"],
    ["products", "timeouts_seconds = '[]'", "products_timeouts_seconds_check"],
    ["firmware", "sha1 = null", "firmware_stored_hashes_check"],
    ["firmware", "signature = sha512('x')", "firmware_signature_signature_key_check"],
    ["firmware", "signature = 'short', signature_key = sha256('x')", "firmware_signature_check"],
    ["rollouts", "max_concurrent = 0", "rollouts_max_concurrent_check"],
    ["rollouts", "error_threshold_basis_points = 10001", "rollouts_error_threshold_basis_points_check"],
    ["rollouts", "phases = '{}'", "rollouts_phase_index_check"],
    ["rollouts", "phases = '[{}]', phase_index = 1", "rollouts_phase_index_check"],
    ["rollouts", "window_days = '{1}'", "rollouts_window_check"],
    ["rollouts", "window_days = '{8}', window_from_minute = 0, window_to_minute = 0", "rollouts_window_days_check"],
    ["rollouts", "window_days = '{}', window_from_minute = 0, window_to_minute = 0", "rollouts_window_days_check"],
    ["rollouts", "window_days = '{1}', window_from_minute = 0, window_to_minute = 1440", "rollouts_window_to_minute"],
    ["rollouts", "paused_by = 'nobody'", "rollouts_paused_by_check"],
    ["devices", "previous_token_hash = sha256('x')", "devices_previous_token_valid_until_check"],
    ["devices", "attributes = '1'", "devices_attributes_check"],
    ["devices", "registered_by = 'itself'", "devices_registered_by_check"],
  ])("refuses %s with %s", async (table, assignment, constraint) => {
    const { db, attemptId } = await anUpgrade(database());
    await db.insert(schema.attemptEvents).values({ attemptId, seq: 1, toState: "offered" });
    await expect(database().query(`update ${table} set ${assignment}`)).rejects.toThrow(constraint);
  });

  it("refuses an audit entry by an actor of an unknown kind", async () => {
    const values = "'01900000-0000-7000-8000-000000000000', 'device', 'device.update', 'x'";
    await expect(
      database().query(`insert into audit_log (public_id, actor_kind, action, subject_id) values (${values})`),
    ).rejects.toThrow("audit_log_actor_kind_check");
  });

  it("keeps a rollout's counters from going below nothing, and a reached threshold from being without its time", async () => {
    const { db } = await anUpgrade(database());
    const [rollout] = await db.select().from(schema.rollouts).limit(1);
    const { id: rolloutId, revision } = rollout ?? expect.fail("no rollout");
    await db.insert(schema.rolloutCounters).values({ rolloutId, revision }).onConflictDoNothing();
    for (const [change, constraint] of [
      ["live = -1", "rollout_counters_live_check"],
      ["reached = 'error_threshold'", "rollout_counters_reached_at_check"],
    ] as const) {
      await expect(database().query(`update rollout_counters set ${change}`)).rejects.toThrow(constraint);
    }
  });

  it("keeps each number of a sequence once within its attempt", async () => {
    const { db, attemptId } = await anUpgrade(database());
    const event = { attemptId, seq: 1, toState: "offered" } as const;
    await db.insert(schema.attemptEvents).values(event);
    expect(await refusedBy(db.insert(schema.attemptEvents).values(event))).toBe("attempt_events_pkey");
  });

  it("deletes nothing that others refer to", async () => {
    await anUpgrade(database());
    for (const table of ["products", "firmware", "rollouts", "devices", "upgrades"]) {
      await expect(database().query(`delete from ${table}`)).rejects.toThrow("foreign key");
    }
  });

  it("gives attempts positive int32 ids", async () => {
    const { attemptId } = await anUpgrade(database());
    expect(attemptId).toBeGreaterThan(0);
    const [column] = await database().query(
      "select data_type from information_schema.columns where table_name = 'upgrade_attempts' and column_name = 'id'",
    );
    expect(column).toEqual({ data_type: "integer" });
  });

  it("keeps a catalog revision and a time to the last digit", async () => {
    const { db } = database();
    const name = uniqueName("product");
    const row = { name, versionScheme: "semver", confirmBy: "report", pollIntervalSeconds: 30 } as const;
    const createdAt = new Date("2026-02-28T23:59:59.999Z");
    const catalogRevision = 2n ** 62n + 1n;
    const [kept] = await db
      .insert(schema.products)
      .values({ ...row, createdAt, catalogRevision })
      .returning();
    expect(kept).toMatchObject({ createdAt, catalogRevision });
  });
});
