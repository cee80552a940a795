/**
 * Every state and reason of the domain, once: the schema's CHECK constraints, the API's validation and the transition
 * table are all made from these tuples. The words are explained in the repository's GLOSSARY.md.
 */

/** The life of a firmware: a draft is offered to nobody, a withdrawn one to nobody any more. */
export const FIRMWARE_STATES = ["draft", "released", "withdrawn"] as const;
export type FirmwareState = (typeof FIRMWARE_STATES)[number];

/** The life of a rollout. `finished` and `stopped` are final. */
export const ROLLOUT_STATES = ["draft", "running", "paused", "finished", "stopped"] as const;
export type RolloutState = (typeof ROLLOUT_STATES)[number];

/** What the outcomes of a rollout's attempts can set off. */
export const THRESHOLDS = ["success_threshold", "error_threshold"] as const;
export type Threshold = (typeof THRESHOLDS)[number];

/** Who or what has paused a rollout. */
export const PAUSE_CAUSES = ["operator", ...THRESHOLDS] as const;
export type PauseCause = (typeof PAUSE_CAUSES)[number];

/** States in which an attempt is open. A device has at most one attempt in any of them. */
export const LIVE_ATTEMPT_STATES = [
  "awaiting_confirmation",
  "offered",
  "downloading",
  "downloaded",
  "installing",
  "installed",
  "cancelling",
] as const;
export type LiveAttemptState = (typeof LIVE_ATTEMPT_STATES)[number];

/** States in which an attempt is closed. Only a late success changes one: `timed_out` becomes `succeeded`. */
export const TERMINAL_ATTEMPT_STATES = ["succeeded", "failed", "cancelled", "timed_out", "superseded"] as const;
export type TerminalAttemptState = (typeof TERMINAL_ATTEMPT_STATES)[number];

/** All states of an attempt. */
export const ATTEMPT_STATES = [...LIVE_ATTEMPT_STATES, ...TERMINAL_ATTEMPT_STATES] as const;
export type AttemptState = LiveAttemptState | TerminalAttemptState;

/** What a device can say about an attempt. */
export const REPORTED_STATES = [
  "confirmed",
  "denied",
  "downloading",
  "downloaded",
  "installing",
  "installed",
  "succeeded",
  "failed",
  "cancelled",
  "cancel_rejected",
] as const;
export type ReportedState = (typeof REPORTED_STATES)[number];

/** How an attempt that is `cancelling` ends once the device has answered. */
export const CANCEL_OUTCOMES = ["cancelled", "superseded"] as const satisfies readonly TerminalAttemptState[];
export type CancelOutcome = (typeof CANCEL_OUTCOMES)[number];

/** How a product writes and orders its versions. */
export const VERSION_SCHEMES = ["semver", "dotted"] as const;
export type VersionScheme = (typeof VERSION_SCHEMES)[number];

/** What makes an attempt succeed: the device's word, or the device reporting the new version. */
export const CONFIRM_BY = ["report", "version"] as const;
export type ConfirmBy = (typeof CONFIRM_BY)[number];

/** By which way a device was registered: one by one, in bulk, or by itself with a gateway token. */
export const DEVICE_ORIGINS = ["operator", "bulk", "gateway"] as const;
export type DeviceOrigin = (typeof DEVICE_ORIGINS)[number];

/**
 * What the figures of a fleet count:
 * - `rollout_state`: a rollout's attempts, by state;
 * - `rollout_step_state`: those among them that are a step to the rollout's firmware, by firmware and state;
 * - `rollout_failure`: a rollout's attempts that failed or timed out, by reason;
 * - `product_version`: a product's devices, by the version that they run as far as it is known.
 */
export const FIGURE_KINDS = ["rollout_state", "rollout_step_state", "rollout_failure", "product_version"] as const;
export type FigureKind = (typeof FIGURE_KINDS)[number];

/** Why a check answers "none", in the order of precedence: of several refusals the first one here is given. */
export const NONE_REASONS = [
  "DEVICE_BLOCKED",
  "NO_FIRMWARE",
  "UP_TO_DATE",
  "HARDWARE_MISMATCH",
  "UNKNOWN_VERSION",
  "DOWNGRADE_REFUSED",
  "NOT_IN_ROLLOUT",
  "OUTRANKED",
  "ROLLOUT_PAUSED",
  "WINDOW_CLOSED",
  "CAP_REACHED",
  "UPGRADE_CANCELLED",
  "ATTEMPTS_EXHAUSTED",
  "BACKOFF",
] as const;
export type NoneReason = (typeof NONE_REASONS)[number];

/** The terms of a rollout by which it does not address a device, in the order in which they are looked at. */
export const EXCLUSIONS = ["channel", "groups", "attributeFilter", "percentage"] as const;
export type Exclusion = (typeof EXCLUSIONS)[number];

/** Who changes something: an operator by key, or the service itself. */
export const ACTOR_KINDS = ["operator", "system"] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];

/** Every change that is written to the audit log, as `subject.verb`. */
export const AUDIT_ACTIONS = [
  "product.create",
  "product.update",
  "firmware.register",
  "firmware.sign",
  "firmware.release",
  "firmware.withdraw",
  "firmware.delete",
  "rollout.create",
  "rollout.update",
  "rollout.start",
  "rollout.pause",
  "rollout.resume",
  "rollout.advance",
  "rollout.finish",
  "rollout.stop",
  "rollout.allow_devices",
  "rollout.disallow_devices",
  "upgrade.cancel",
  "upgrade.reset",
  "device.register",
  "device.register_bulk",
  "device.rotate_token",
  "device.revoke_tokens",
  "device.update",
  "device.delete",
  "gateway_token.create",
  "gateway_token.revoke",
  "operator_key.create",
  "operator_key.revoke",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];
