export { type Database, migrationsFolder } from "./database.ts";
export { OTA_ERROR_CODES, OtaError, type OtaErrorCode, ServiceBusyError } from "./errors.ts";
export * as schema from "./schema/index.ts";
export { hashToken } from "./tokens.ts";
export {
  ACTOR_KINDS,
  type ActorKind,
  ATTEMPT_STATES,
  type AttemptState,
  CANCEL_OUTCOMES,
  type CancelOutcome,
  CONFIRM_BY,
  type ConfirmBy,
  FIRMWARE_STATES,
  type FirmwareState,
  LIVE_ATTEMPT_STATES,
  type LiveAttemptState,
  NONE_REASONS,
  type NoneReason,
  REPORTED_STATES,
  type ReportedState,
  ROLLOUT_STATES,
  type RolloutState,
  TERMINAL_ATTEMPT_STATES,
  type TerminalAttemptState,
  VERSION_SCHEMES,
  type VersionScheme,
} from "./vocabulary.ts";
