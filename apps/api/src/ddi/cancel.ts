import { actionOf, requireAction } from "./action.ts";
import { ddiRoute } from "./route.ts";

/** What is to be stopped. */
export const cancelAction = ddiRoute("GET", "/cancelAction/{actionId}", {
  async handle(request) {
    const { id, state } = await actionOf(request);
    requireAction(state === "cancelling");
    return { status: 200, body: { id: String(id), cancelAction: { stopId: String(id) } } };
  },
});
