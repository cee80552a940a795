import { activateAutoConfirm, deactivateAutoConfirm, getAutoConfirm, isOpen, OtaError, type Report } from "@ota/domain";
import { actionOf, requireAction } from "./action.ts";
import { asObject, parseLeniently, readText, refuseBody } from "./ddi-body.ts";
import { deploymentBody } from "./deployment.ts";
import { textsOf } from "./feedback-body.ts";
import { withPatience } from "./patience.ts";
import { DdiRefusal } from "./refusals.ts";
import { ddiRoute } from "./route.ts";

/** Whether the device consents to everything, and what it is asked to consent to. It is a check as the base poll is. */
export const confirmationBase = ddiRoute("GET", "/confirmationBase", {
  refusable: true,
  async handle({ services, credentials, baseUrl }) {
    const answer = await services.checks.checkForUpdate(credentials);
    const auto = await getAutoConfirm(services.db, credentials);
    const link = (resource: string) => ({ href: `${baseUrl}/confirmationBase${resource}` });
    const waiting = answer.decision === "update" && answer.attempt.state === "awaiting_confirmation";
    return {
      status: 200,
      body: {
        autoConfirm:
          auto === null
            ? { active: false }
            : {
                active: true,
                ...(auto.initiator === null ? {} : { initiator: auto.initiator }),
                ...(auto.remark === null ? {} : { remark: auto.remark }),
                activatedAt: Date.parse(auto.activatedAt),
              },
        _links: {
          ...(auto === null
            ? { activateAutoConfirm: link("/activateAutoConfirm") }
            : { deactivateAutoConfirm: link("/deactivateAutoConfirm") }),
          ...(waiting ? { confirmationBase: link(`/${answer.attempt.id}`) } : {}),
        },
      },
    };
  },
});

/** What the device is asked to consent to. */
export const confirmationAction = ddiRoute("GET", "/confirmationBase/{actionId}", {
  async handle(request) {
    const action = await actionOf(request);
    requireAction(action.state === "awaiting_confirmation");
    return { status: 200, body: await deploymentBody("confirmation", action, request) };
  },
});

/**
 * The answer to it. Only where the rollout asks for consent; there a repeated answer is taken as the first one was. Denying
 * is noted, and leaves the question open.
 */
export const confirmationFeedback = ddiRoute("POST", "/confirmationBase/{actionId}/feedback", {
  async handle(request) {
    const { services, credentials, exchange } = request;
    const body = asObject(parseLeniently(await readText(request)));
    const { confirmation, code, details } = body ?? {};
    if (confirmation !== "confirmed" && confirmation !== "denied") {
      return refuseBody(request, "The answer needs a confirmation: confirmed, or denied.");
    }
    const report: Report = {
      state: confirmation,
      code: typeof code === "number" ? code : undefined,
      details: textsOf(details),
    };
    await withPatience(async () => {
      const { id: attemptId, state, requiresConfirmation } = await actionOf(request);
      if (!isOpen(state)) {
        throw new OtaError("ATTEMPT_CLOSED", `The action is over: it is ${state}. Poll again.`, { details: { state } });
      }
      requireAction(requiresConfirmation && state !== "cancelling");
      await services.checks.recordReport({ ...credentials, attemptId, report });
    });
    exchange.note({ reported: confirmation });
    return { status: 200 };
  },
});

/** Consents to what the device is asked now, and to all it will be. */
export const activate = ddiRoute("POST", "/confirmationBase/activateAutoConfirm", {
  async handle(request) {
    const { services, credentials } = request;
    const text = await readText(request);
    const body = text === "" ? {} : asObject(parseLeniently(text));
    if (body === undefined) return refuseBody(request, "The body is an object, or none.");
    const { initiator, remark } = body;
    const words = {
      initiator: typeof initiator === "string" ? initiator : undefined,
      remark: typeof remark === "string" ? remark : undefined,
    };
    const { db, observeMove: observe } = services;
    await activateAutoConfirm(db, { ...credentials, ...words, observe }).catch((error: unknown) => {
      throw error instanceof OtaError && error.code === "ALREADY_EXISTS" ? alreadyActive(error.message) : error;
    });
    return { status: 200 };
  },
});

/** Asks again from now on. */
export const deactivate = ddiRoute("POST", "/confirmationBase/deactivateAutoConfirm", {
  async handle({ services, credentials }) {
    await withPatience(() => deactivateAutoConfirm(services.db, credentials));
    return { status: 200 };
  },
});

function alreadyActive(message: string): DdiRefusal {
  return new DdiRefusal({ status: 409, errorCode: "hawkbit.server.error.repo.autoConfAlreadyActive", message });
}
