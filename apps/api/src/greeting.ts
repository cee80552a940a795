import type { ServiceKeys } from "./keys.ts";
import { quickStartLines } from "./quick-start.ts";

/** What {@link greeting} is about. */
export interface GreetingOptions {
  readonly url: string;
  readonly keys: ServiceKeys;
  /** Whether nothing has been published yet. */
  readonly empty: boolean;
  /** Whether people read it: only then is a new key shown, so that it gets into no file. */
  readonly terminal: boolean;
}

/** What an embedded service says to the person who started it. It goes to the terminal, never through the log. */
export function greeting({ url, keys, empty, terminal }: GreetingOptions): string {
  const { operatorKey } = keys;
  const lines = ["", `The OTA service runs at ${url}, its reference is at ${url}/docs.`];
  lines.push(
    "Embedded database and locks: for one process, and not proof against a power cut. See docs/configuration.md.",
  );
  if (operatorKey !== undefined) {
    lines.push(`The operator key is in ${operatorKey.file}.`);
    if (operatorKey.created && terminal) lines.push(`Shown this once: ${operatorKey.value}`);
    if (empty) {
      lines.push("", "Try it, in another terminal:", "", ...quickStartLines({ url, keyFile: operatorKey.file }));
    }
  }
  return `${lines.join("\n")}\n\n`;
}
