import type { ReportedState } from "../vocabulary.ts";

/** What a device says about an attempt. Texts that are too long are cut, and data that cannot be kept is left out. */
export interface Report {
  readonly state: ReportedState;
  /** 0 to 100. */
  readonly progressPercent?: number | undefined;
  readonly message?: string | undefined;
  /** Log lines; the last 50 are kept. */
  readonly details?: readonly string[] | undefined;
  /** The device's own code, such as an exit status. */
  readonly code?: number | undefined;
  /** The device's clock: kept as data, never used for order. */
  readonly deviceTime?: Date | undefined;
  /** The version that the device runs now. */
  readonly version?: string | undefined;
  /** Names of further fields that the device sent and that could not be read: the history tells them. */
  readonly unreadable?: readonly string[] | undefined;
}
