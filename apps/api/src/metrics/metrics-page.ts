/** What `/metrics` shows, and to whom. */
export interface MetricsPage {
  /** Of {@link text}. */
  readonly contentType: string;
  /** The figures in Prometheus' text format. */
  text(): Promise<string>;
  /** The SHA-256 of the token that a reader must send; `undefined`: everybody may read. */
  readonly tokenHash: Uint8Array | undefined;
}
