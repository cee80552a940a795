import type {
  AttemptState,
  CancelOutcome,
  ConfirmBy,
  FirmwareState,
  LiveAttemptState,
  RolloutState,
  VersionScheme,
} from "../vocabulary.ts";

/** What a decision needs to know of a device, as its row says. */
export interface DeviceFacts {
  readonly id: bigint;
  readonly channel: string;
  /** `null`: unknown; it then fits only firmware for any hardware. */
  readonly hardwareRevision: string | null;
  /** What it said last that it runs: the truth, even where it is no version in the product's scheme. */
  readonly reportedVersion: string | null;
  /** The last install that was confirmed: what it runs while it reports nothing. */
  readonly confirmedVersion: string | null;
  readonly blocked: boolean;
}

/** What happened between a device and each firmware so far. */
export interface DeviceHistory {
  readonly records: readonly UpgradeRecord[];
}

/** The one upgrade record of a device and a firmware, with its attempts in their order. */
export interface UpgradeRecord {
  readonly id: bigint;
  readonly publicId: string;
  readonly firmwareId: bigint;
  /** Attempts numbered above this count towards the cap. */
  readonly attemptsForgiven: number;
  readonly attempts: readonly AttemptRecord[];
}

export interface AttemptRecord {
  /** The attempt's id: a positive int32. */
  readonly id: number;
  /** Its number within the record: 1, 2, 3, … */
  readonly n: number;
  readonly rolloutId: bigint;
  readonly state: AttemptState;
  readonly cancelOutcome: CancelOutcome | null;
  /** `null` while it is open. */
  readonly closedAt: Date | null;
}

/** The attempt that is open for a device: there is at most one. */
export interface LiveAttempt extends AttemptRecord {
  readonly state: LiveAttemptState;
  readonly record: UpgradeRecord;
}

/** What a product's devices can be offered, as one snapshot of the database says. */
export interface CatalogFacts {
  readonly productId: bigint;
  /** The product's catalog revision in that snapshot. */
  readonly revision: bigint;
  readonly versionScheme: VersionScheme;
  readonly confirmBy: ConfirmBy;
  /** Every firmware but drafts. */
  readonly firmware: readonly FirmwareFacts[];
  /** Every rollout of that firmware but drafts. */
  readonly rollouts: readonly RolloutFacts[];
}

export interface FirmwareFacts {
  readonly id: bigint;
  readonly publicId: string;
  readonly version: string;
  readonly state: FirmwareState;
  /** The hardware it runs on; empty: any. */
  readonly hardwareRevisions: readonly string[];
  /** The least version a device must run before it may take this one. */
  readonly requiresVersion: string | null;
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly sha1: string | null;
  readonly md5: string | null;
  readonly fileName: string;
  readonly contentType: string;
}

export interface RolloutFacts {
  readonly id: bigint;
  readonly publicId: string;
  readonly firmwareId: bigint;
  readonly channel: string;
  readonly state: RolloutState;
  /** The greatest is tried first; among equals the newest firmware. */
  readonly priority: number;
  /** The share of the fleet in hundredths of a percent. */
  readonly percentageBasisPoints: number;
  readonly allowDowngrade: boolean;
  readonly requiresConfirmation: boolean;
}
