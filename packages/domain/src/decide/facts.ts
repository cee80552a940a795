import type { DeviceAttributes } from "../schema/devices.ts";
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
  readonly groups: readonly string[];
  readonly attributes: DeviceAttributes;
  /** An IANA name; `null`: the product's. */
  readonly timeZone: string | null;
  /** The rollouts on whose allow-lists it is. */
  readonly allowedBy: readonly bigint[];
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
  /**
   * `cancelled`: an operator has cancelled it, whatever became of it then. `superseded` where its state is `cancelled`: the
   * service has taken the offer back before the device had begun.
   */
  readonly cancelOutcome: CancelOutcome | null;
  /** `null` while it is open. */
  readonly closedAt: Date | null;
}

/** The attempt that is open for a device: there is at most one. */
export interface LiveAttempt extends AttemptRecord {
  readonly state: LiveAttemptState;
  readonly record: UpgradeRecord;
}

/** How many places of a rollout are taken, where it counts them. */
export interface RolloutPlaces {
  /** Attempts that are open. */
  readonly live: number;
  /** Devices that ever had an attempt. */
  readonly granted: number;
  /** Whether a threshold was reached: no place is given, although the rollout may not be paused yet. */
  readonly thresholdReached: boolean;
}

/** What a product's devices can be offered, as one snapshot of the database says. */
export interface CatalogFacts {
  readonly productId: bigint;
  /** The product's catalog revision in that snapshot. */
  readonly revision: bigint;
  readonly versionScheme: VersionScheme;
  readonly confirmBy: ConfirmBy;
  /** Where devices are that have no time zone of their own: an IANA name. */
  readonly timeZone: string;
  readonly maxAttempts: number;
  readonly backoffSeconds: number;
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
  /** The Ed25519 signature over its manifest. */
  readonly signature: Uint8Array | null;
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
  /** For devices in any of these; empty: whatever their groups. */
  readonly groups: readonly string[];
  /** A filter as `readAttributeFilter` takes it; `null`: whatever their attributes. */
  readonly attributeFilter: unknown;
  /** The hardware it is for, within what the firmware runs on; empty: all of that. */
  readonly hardwareRevisions: readonly string[];
  readonly maxConcurrent: number | null;
  readonly maxTotal: number | null;
  /** When updates may begin: all three, or none. */
  readonly windowDays: readonly number[] | null;
  readonly windowFromMinute: number | null;
  readonly windowToMinute: number | null;
  /** `null`: the product's. */
  readonly maxAttempts: number | null;
  readonly backoffSeconds: number | null;
  readonly allowDowngrade: boolean;
  readonly requiresConfirmation: boolean;
  /** Whether its places are counted: each new attempt has to take one. */
  readonly counted: boolean;
  /** Grows with every change of the rollout: an attempt is opened only on the one that was decided on. */
  readonly revision: bigint;
}
