import type { CheckObserver, Database, UpdateChecks } from "@ota/domain";
import type { ArtifactStore } from "./artifacts/artifact-store.ts";
import type { ArtifactUrls } from "./artifacts/artifact-urls.ts";
import type { Health } from "./health.ts";
import type { PublicUrlOf } from "./http/public-url.ts";
import type { MetricsPage } from "./metrics/metrics-page.ts";

/** What handlers work with: made once by `main.ts`, or by a test. */
export interface Services {
  readonly db: Database;
  readonly checks: UpdateChecks;
  /** Is told of attempts that move elsewhere than in `checks`; `undefined`: nobody looks on. */
  readonly observeMove: CheckObserver | undefined;
  /** Where the bytes of firmware are kept. */
  readonly artifacts: ArtifactStore;
  /** Makes the artifact's URL in a check's answer, and checks it when it is used. */
  readonly artifactUrls: ArtifactUrls;
  /** Whether the parts that the service stands on are there. */
  readonly health: Health;
  /** The figures of this process; `undefined`: none are kept. */
  readonly metrics: MetricsPage | undefined;
  /** The largest firmware that is accepted. */
  readonly maxArtifactBytes: number;
  /** Where the client of a request reaches the service: the base of absolute links. */
  readonly publicUrlOf: PublicUrlOf;
}
