/** One bad request and what it must be answered. */
export interface BadRequest {
  readonly title: string;
  readonly method?: string;
  readonly path?: string;
  /** `null`: no Authorization header. */
  readonly token?: "device" | "operator" | string | null;
  /** Further raw header lines. */
  readonly headers?: readonly string[];
  readonly body?: string | Buffer;
  /** @default "application/json" where there is a body */
  readonly type?: string | null;
  readonly status: number;
  readonly code: string;
  /** Header lines that the answer must have. */
  readonly answers?: Readonly<Record<string, string | RegExp>>;
  /** Fields that the answer must name. */
  readonly fields?: readonly string[];
}
