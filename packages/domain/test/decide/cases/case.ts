import type {
  AttemptState,
  CancelOutcome,
  DeviceAttributes,
  FirmwareState,
  LiveAttemptState,
  RolloutState,
  VersionScheme,
} from "@ota/domain";

/** One rule of the product as a situation and what comes of it. It is run on the pure function and on real databases. */
export interface Case {
  readonly title: string;
  /** @default "semver" */
  readonly scheme?: VersionScheme;
  readonly device?: {
    readonly runs?: string;
    readonly confirmed?: string;
    /** @default "stable" */
    readonly channel?: string;
    readonly hardware?: string;
    readonly blocked?: boolean;
    readonly groups?: readonly string[];
    readonly attributes?: DeviceAttributes;
    /** @default the product's */
    readonly timeZone?: string;
  };
  readonly product?: {
    /** @default "UTC" */
    readonly timeZone?: string;
    /** @default 3 */
    readonly maxAttempts?: number;
    /** @default 600 */
    readonly backoffSeconds?: number;
  };
  readonly firmware: readonly GivenFirmware[];
  readonly records?: readonly GivenRecord[];
  /** As {@link describeDecision} puts it. */
  readonly expect: string;
}

export interface GivenFirmware {
  readonly version: string;
  /** @default "released" */
  readonly state?: FirmwareState;
  readonly hardware?: readonly string[];
  readonly requires?: string;
  /** @default one that is running, to the whole of the channel "stable" */
  readonly rollouts?: readonly GivenRollout[];
}

export interface GivenRollout {
  readonly state?: RolloutState;
  readonly channel?: string;
  readonly priority?: number;
  readonly percentageBasisPoints?: number;
  readonly allowDowngrade?: boolean;
  readonly groups?: readonly string[];
  readonly attributeFilter?: unknown;
  readonly hardware?: readonly string[];
  /** Whether the device is on its allow-list. */
  readonly allowsDevice?: boolean;
  readonly maxAttempts?: number;
  readonly backoffSeconds?: number;
  readonly maxConcurrent?: number;
  readonly maxTotal?: number;
  /** Its counters, where it has any. */
  readonly taken?: { readonly live: number; readonly granted: number; readonly thresholdReached?: boolean };
  /** In minutes from now, by the clock of a zone: every day. */
  readonly window?: { readonly opensIn: number; readonly closesIn: number; readonly timeZone: string };
}

export interface GivenRecord {
  readonly firmware: string;
  readonly forgiven?: number;
  /** The firmware whose first rollout it was offered by. @default the record's own */
  readonly by?: string;
  readonly attempts: readonly GivenAttempt[];
}

export interface GivenAttempt {
  readonly state: AttemptState;
  readonly cancelOutcome?: CancelOutcome;
  readonly closedMinutesAgo?: number;
}

export const running = (version: string, more: Partial<GivenFirmware> = {}): GivenFirmware => ({ version, ...more });
export const paused: Pick<GivenFirmware, "rollouts"> = { rollouts: [{ state: "paused" }] };
export const without: Pick<GivenFirmware, "rollouts"> = { rollouts: [] };
export const open = (firmware: string, state: LiveAttemptState, more: Partial<GivenRecord> = {}): GivenRecord => ({
  firmware,
  attempts: [{ state }],
  ...more,
});
export const closed = (
  firmware: string,
  attempts: readonly (readonly [AttemptState, number])[],
  more: Partial<GivenRecord> = {},
): GivenRecord => ({
  firmware,
  attempts: attempts.map(([state, closedMinutesAgo]) => ({ state, closedMinutesAgo })),
  ...more,
});

/** A step that no rollout offers by itself. */
export const step = running("1.5.0", without);
