import { MAX_ATTRIBUTES, OtaError, recordAttributes, toldFacts } from "@ota/domain";
import { asObject, parseLeniently, readText, refuseBody } from "./ddi-body.ts";
import { withPatience } from "./patience.ts";
import { DdiRefusal } from "./refusals.ts";
import { type DdiRequest, ddiRoute } from "./route.ts";

const MODES = ["merge", "replace", "remove"] as const;

/** What a device says about itself: its attributes, among which a product may have named its hardware and its version. */
export const configData = ddiRoute("PUT", "/configData", {
  async handle(request) {
    const { services, credentials } = request;
    const changes = await readConfigData(request);
    await withPatience(async () => {
      const reported = await toldFacts(services.db, { ...credentials, attributes: changes.attributes });
      // First the check, since it alone knows what a version means for an open attempt; it is safe to repeat.
      if (Object.values(reported).some((told) => told !== undefined)) {
        await services.checks.checkForUpdate({ ...credentials, reported });
      }
      await recordAttributes(services.db, { ...credentials, ...changes, answersRequest: true });
    }).catch((error: unknown) => {
      throw isTooMany(error) ? tooMany() : error;
    });
    return { status: 200 };
  },
});

async function readConfigData(request: DdiRequest) {
  const body = asObject(parseLeniently(await readText(request)));
  const data = Object.entries(asObject(body?.["data"]) ?? {});
  const mode = MODES.find((known) => known === (body?.["mode"] ?? "merge"));
  if (data.length === 0 || mode === undefined) {
    return refuseBody(request, `Attributes need data that is not empty, and one of the modes ${MODES.join(", ")}.`);
  }
  if (data.length > MAX_ATTRIBUTES) throw tooMany();
  const attributes = Object.fromEntries(
    data.map(([name, value]) => [name, mode === "remove" || value === null ? null : textOf(value)]),
  );
  return { attributes, mode: mode === "remove" ? "merge" : mode } as const;
}

/** hawkBit takes white space of any kind, such as the line's end that a shell leaves. */
function textOf(value: unknown): string {
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return text.replaceAll(/\s+/g, " ").trim();
}

function isTooMany(error: unknown): boolean {
  return error instanceof OtaError && error.details?.["maxAttributes"] !== undefined;
}

function tooMany(): DdiRefusal {
  return new DdiRefusal({
    status: 429,
    errorCode: "hawkbit.server.error.quota.tooManyEntries",
    message: `A device has at most ${MAX_ATTRIBUTES} attributes.`,
  });
}
