export type { AbortSignalLike } from "./abort-signal.ts";
export { type CancelTimer, type Clock, systemClock, type TimerOptions } from "./clock.ts";
export { CombinedStore } from "./combined-store.ts";
export {
  LockError,
  type LockErrorCode,
  type LockErrorContext,
  LockKeyConflictError,
  LockLostError,
  LockOptionsError,
  LockQuorumError,
  LockStoreError,
  LockTimeoutError,
  type StoreOperation,
  type StoreVote,
} from "./errors.ts";
export { fencedWrite } from "./fenced-write.ts";
export type { Lease, LeaseStatus, PromoteOutcome } from "./lease.ts";
export type { Lock } from "./lock.ts";
export {
  type AttemptEvent,
  type FailedEvent,
  type LeaseEvent,
  type LockEvent,
  type LockEvents,
  type LostEvent,
  onLockEvent,
  type WaitEvent,
} from "./lock-events.ts";
export { LockFactory } from "./lock-factory.ts";
export type { LogFields, Logger } from "./logger.ts";
export type { LeaseSignal } from "./loss-signal.ts";
export { MemoryState } from "./memory-state.ts";
export { MemoryStore, type MemoryStoreOptions } from "./memory-store.ts";
export { NullStore, type NullStoreOptions } from "./null-store.ts";
export type {
  AcquireOptions,
  CombinedStoreOptions,
  HoldOptions,
  LockFactoryOptions,
  LockOptions,
  RestoreOptions,
  TryAcquireOptions,
  WaitOptions,
} from "./options.ts";
export type { SerialisedLease } from "./serialised-lease.ts";
export {
  type AcquireRequest,
  type AcquireResult,
  type ExtendOutcome,
  type ExtendRequest,
  type Grant,
  type LockMode,
  type LockStore,
  MAX_TTL_MS,
  type OwnedKey,
  type ReleaseOutcome,
  type StoreReach,
} from "./store.ts";
export {
  type DemoteOutcome,
  type DriftingStore,
  type FencingStore,
  hasDrift,
  hasFencing,
  hasInspection,
  hasSharedLocks,
  type InspectableStore,
  type KeyRequest,
  type LockHolder,
  type LockSnapshot,
  type PromoteRequest,
  type PromoteResult,
  type SharedLockStore,
} from "./store-capabilities.ts";
export {
  hasWaitQueue,
  type PlaceAcquireResult,
  type PlaceReleaseRequest,
  type PlaceReleaseResult,
  type PlaceRequest,
  type WaiterRequest,
  type WaitPlace,
  type WaitQueueStore,
} from "./wait-queue.ts";
