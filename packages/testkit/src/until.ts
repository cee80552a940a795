import { setTimeout as sleep } from "node:timers/promises";

/**
 * Resolves once the condition holds, asking every 20 ms.
 * @throws Error after `timeoutMs`, 30 s by default.
 */
export async function until(
  what: string,
  condition: () => Promise<boolean>,
  timeoutMs: number = 30_000,
): Promise<void> {
  const giveUpAt = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > giveUpAt) throw new Error(`within ${timeoutMs} ms it did not come about that ${what}`);
    await sleep(20);
  }
}
