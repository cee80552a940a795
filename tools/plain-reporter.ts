import type { Reporter, TestModule } from "vitest/node";

/** Prints one closing line that scripts can read: `N passed, N failed`, and `, N skipped` when there are any. */
export default class PlainReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const count = { passed: 0, failed: 0, skipped: 0 };
    for (const module of modules) {
      const tests = [...module.children.allTests()];
      for (const test of tests) {
        const { state } = test.result();
        count[state === "passed" || state === "failed" ? state : "skipped"]++;
      }
      // A file that did not load, or whose hook failed, has no failing test of its own and is one failure all the same.
      const failedOutsideTests = tests.length === 0 || module.errors().length > 0;
      if (module.state() === "failed" && failedOutsideTests) count.failed++;
    }
    count.failed += unhandledErrors.length;
    const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : "";
    console.log(`\n${count.passed} passed, ${count.failed} failed${skipped}`);
  }
}
