import { type Span, SpanStatusCode, type Tracer } from "@opentelemetry/api";
import type { UpdateChecks } from "@ota/domain";

/** The same checks, each within a span of its own that says how it was decided. */
export function tracedChecks(checks: UpdateChecks, tracer: Tracer): UpdateChecks {
  return {
    ...checks,
    checkForUpdate: (input) =>
      within(tracer, "check for update", async (span) => {
        const answer = await checks.checkForUpdate(input);
        const reason = answer.decision === "update" ? answer.how : answer.reason;
        span.setAttributes({ "ota.decision": answer.decision, "ota.reason": reason, "ota.device": answer.device.id });
        return answer;
      }),
    recordReport: (input) =>
      within(tracer, "record report", async (span) => {
        span.setAttributes({ "ota.attempt": input.attemptId, "ota.reported": input.report.state });
        const recorded = await checks.recordReport(input);
        span.setAttributes({ "ota.effect": recorded.effect, "ota.state": recorded.attempt.state });
        return recorded;
      }),
  };
}

function within<T>(tracer: Tracer, name: string, work: (span: Span) => Promise<T>): Promise<T> {
  return tracer.startActiveSpan(name, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: codeOf(error) });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Never the message: it may quote what was sent. */
function codeOf(error: unknown): string {
  const { code, name } = error as { code?: unknown; name?: unknown };
  return String(code ?? name);
}
