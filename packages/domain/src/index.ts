export { type Actor, type AuditEntry, type AuditFilter, listAudit } from "./audit.ts";
export {
  type Artifact,
  type ArtifactFacts,
  findArtifact,
  findArtifactForDevice,
  isPastDownload,
} from "./catalog/artifacts.ts";
export { deleteFirmware } from "./catalog/delete-firmware.ts";
export { type Firmware, getFirmware, listFirmware } from "./catalog/firmware.ts";
export { createProduct, getProduct, listProducts, type Product } from "./catalog/products.ts";
export {
  type ArtifactPlace,
  checkNewFirmware,
  type NewFirmware,
  registerFirmware,
} from "./catalog/register-firmware.ts";
export { DEFAULT_CHANNEL, releaseFirmware, withdrawFirmware } from "./catalog/release.ts";
export type { ErrorThreshold, Rollout, RolloutCounts, RolloutTerms } from "./catalog/rollouts.ts";
export { signFirmware } from "./catalog/sign-firmware.ts";
export { firmwareManifest, type ManifestFacts } from "./catalog/signatures.ts";
export { removeSigningKey, setSigningKey } from "./catalog/signing-key.ts";
export { deleteUnreferencedArtifact, hasStoredArtifacts, unreferencedArtifacts } from "./catalog/stored-artifacts.ts";
export { type ProductChanges, updateProduct } from "./catalog/update-product.ts";
export type { CheckAnswer, NoneAnswer, OfferedAttempt, OfferedFirmware, UpdateAnswer } from "./check/answer.ts";
export type { CheckEvent, CheckObserver, HowAnswered } from "./check/events.ts";
export { type SlotOf, secondsToSlot } from "./check/poll-slot.ts";
export type { ReportedFacts } from "./check/reported.ts";
export {
  type CheckInput,
  createUpdateChecks,
  type UpdateChecks,
  type UpdateChecksOptions,
  type UpdateChecksSettings,
} from "./check/update-checks.ts";
export { type Database, migrationsFolder } from "./database.ts";
export { type AttributeFilter, MAX_FILTER_NODES } from "./decide/attribute-filter.ts";
export type { MaintenanceWindow } from "./decide/window.ts";
export { type AttemptEvent, listAttemptEvents, type NewestEvents } from "./devices/attempt-events.ts";
export {
  type AutoConfirmWords,
  activateAutoConfirm,
  deactivateAutoConfirm,
  getAutoConfirm,
} from "./devices/auto-confirm.ts";
export { cancelUpgrade, resetUpgrade } from "./devices/change-upgrade.ts";
export type { DeviceCredentials } from "./devices/credentials.ts";
export { deleteDevice } from "./devices/delete-device.ts";
export { type Device, type DeviceWithToken, getDevice } from "./devices/device.ts";
export {
  attemptMessages,
  type DeviceAttempt,
  findAttemptForDevice,
  isOpen,
  requireDevice,
} from "./devices/device-attempt.ts";
export { ATTRIBUTE_MODES, type AttributeMode, recordAttributes } from "./devices/device-attributes.ts";
export { type AttributeChanges, MAX_ATTRIBUTES, MAX_GROUPS } from "./devices/device-fields.ts";
export {
  type DeviceLine,
  EXISTING_DEVICES,
  type ExistingDevices,
  type ListedDevice,
  MAX_BULK_DEVICES,
  type RegisteredLine,
} from "./devices/device-list.ts";
export {
  REVOCABLE_TOKENS,
  type RevocableTokens,
  revokeDeviceTokens,
  rotateDeviceToken,
} from "./devices/device-tokens.ts";
export {
  createGatewayToken,
  type GatewayToken,
  listGatewayTokens,
  revokeGatewayToken,
} from "./devices/gateway-tokens.ts";
export { LINE_PROBLEM_CODES, type LineProblem, type LineProblemCode } from "./devices/line-problems.ts";
export { type DeviceFilter, listDevices } from "./devices/list-devices.ts";
export { type NewDevice, registerDevice } from "./devices/register-device.ts";
export { registerDevices } from "./devices/register-devices.ts";
export { toldFacts } from "./devices/told-facts.ts";
export { type DeviceChanges, updateDevice } from "./devices/update-device.ts";
export {
  type Attempt,
  getUpgrade,
  listUpgrades,
  type Upgrade,
  type UpgradeHistory,
} from "./devices/upgrades.ts";
export { errorCodes, OTA_ERROR_CODES, OtaError, type OtaErrorCode, ServiceBusyError } from "./errors.ts";
export { type ExplainedCandidate, type Explanation, explainDevice } from "./explain.ts";
export type { AttemptCounts, AttemptFigures, FailureFigure } from "./figures/attempt-figures.ts";
export { foldFigures } from "./figures/fold-figures.ts";
export { type ProductFigures, productFigures, type VersionFigure } from "./figures/product-figures.ts";
export type { FiguresRequest, LeftOff } from "./figures/read-figures.ts";
export { type RolloutFigures, type RolloutVersionFigure, rolloutFigures } from "./figures/rollout-figures.ts";
export { installationId } from "./installation.ts";
export {
  authenticateOperator,
  createOperatorKey,
  ensureOperatorKey,
  listOperatorKeys,
  type OperatorKey,
  revokeOperatorKey,
} from "./operators/operator-keys.ts";
export { MAX_PAGE_LIMIT, type Page, type PageRequest } from "./pages.ts";
export type { ReportInput, ReportResult } from "./reports/record-report.ts";
export type { Report } from "./reports/report.ts";
export { SERVICE_NOTE } from "./reports/storable-report.ts";
export { type AllowedDevice, changeAllowList, listAllowedDevices, MAX_ALLOWED_AT_ONCE } from "./rollouts/allow-list.ts";
export { ROLLOUT_STEPS, type RolloutStep, takeRolloutStep } from "./rollouts/rollout-states.ts";
export type { GivenTerms } from "./rollouts/rollout-terms.ts";
export { createRollout, getRollout, listRollouts, updateRollout } from "./rollouts/rollouts.ts";
export type { AuditFacts, AuditValue } from "./schema/audit-log.ts";
export type { SilenceTimeouts } from "./schema/columns.ts";
export type { AutoConfirm, DeviceAttributes } from "./schema/devices.ts";
export * as schema from "./schema/index.ts";
export type { RolloutPhase } from "./schema/rollouts.ts";
export { assignDeadlines } from "./sweeper/assign-deadlines.ts";
export type { BackgroundJob, Batch, BatchResult } from "./sweeper/background-job.ts";
export { deleteOldAudit } from "./sweeper/delete-old-audit.ts";
export { deleteOldEvents } from "./sweeper/delete-old-events.ts";
export { settleRollouts } from "./sweeper/settle-rollouts.ts";
export { createSweeper, type Sweeper, type SweeperOptions, type SweeperSettings } from "./sweeper/sweeper.ts";
export { timeOutAttempts } from "./sweeper/time-out-attempts.ts";
export { hashToken } from "./tokens.ts";
export { canonicalVersion, compareVersions } from "./versions/version.ts";
export {
  ACTOR_KINDS,
  type ActorKind,
  ATTEMPT_STATES,
  type AttemptState,
  AUDIT_ACTIONS,
  type AuditAction,
  CANCEL_OUTCOMES,
  type CancelOutcome,
  CONFIRM_BY,
  type ConfirmBy,
  DEVICE_ORIGINS,
  type DeviceOrigin,
  EXCLUSIONS,
  type Exclusion,
  FIGURE_KINDS,
  FIRMWARE_STATES,
  type FigureKind,
  type FirmwareState,
  LIVE_ATTEMPT_STATES,
  type LiveAttemptState,
  NONE_REASONS,
  type NoneReason,
  PAUSE_CAUSES,
  type PauseCause,
  REPORTED_STATES,
  type ReportedState,
  ROLLOUT_STATES,
  type RolloutState,
  TERMINAL_ATTEMPT_STATES,
  type TerminalAttemptState,
  THRESHOLDS,
  type Threshold,
  VERSION_SCHEMES,
  type VersionScheme,
} from "./vocabulary.ts";
