/** See `RedisStoreOptions.replicas`. */
export interface ReplicaOptions {
  /** How many replicas have to confirm, 1 or more. */
  readonly count: number;
  /**
   * How long they are waited for, in integral milliseconds from 1 to `commandTimeoutMs`.
   * @default half of commandTimeoutMs
   */
  readonly timeoutMs?: number;
}

/** The same, with its defaults filled in. */
export type ReplicaAcknowledgement = Required<ReplicaOptions>;
