import { recordDevice, recordTransition } from "../attempts/record-transition.ts";
import { storableWord } from "../attempts/report-text.ts";
import { nextState } from "../attempts/transitions.ts";
import type { Database } from "../database.ts";
import type { Catalog } from "../decide/catalog.ts";
import type { AttemptRecord, UpgradeRecord } from "../decide/facts.ts";
import { attributeNews } from "../devices/device-attributes.ts";
import { type AttributeChanges, changedAttributes, requireAttributes } from "../devices/device-fields.ts";
import type { DeviceState } from "./device-state.ts";
import type { CheckObserver } from "./events.ts";

/** What a device says about itself when it asks. What it leaves out stays as it was. */
export interface ReportedFacts {
  /** The version that it runs. */
  readonly version?: string | undefined;
  readonly hardwareRevision?: string | undefined;
  /** Changes of its attributes: `null` removes one, and the others stay. */
  readonly attributes?: AttributeChanges | undefined;
}

/**
 * Writes what the device has reported, where it is news, as one statement: its row, and the success of the attempt that
 * led to the version. Returns the state as it is then; or `undefined` when the attempt was changed by somebody else
 * meanwhile: the state has to be read again.
 */
export async function applyReported(
  db: Database,
  input: {
    readonly state: DeviceState;
    readonly reported: ReportedFacts;
    readonly catalog: Catalog;
    readonly observe: CheckObserver;
  },
): Promise<DeviceState | undefined> {
  const { state, catalog } = input;
  const { device, history } = state;
  const version = storable(input.reported.version);
  const hardware = storable(input.reported.hardwareRevision);
  if (input.reported.attributes !== undefined) requireAttributes("attributes", input.reported.attributes);
  const attributes = attributeNews(device.attributes, input.reported.attributes);
  const reached = version === undefined ? undefined : reachedBy(version, { state, catalog });
  const news = {
    id: device.id,
    ...(version === undefined || version === device.reportedVersion ? {} : { reportedVersion: version }),
    ...(hardware === undefined || hardware === device.hardwareRevision ? {} : { hardwareRevision: hardware }),
    ...(reached === undefined || version === undefined ? {} : { confirmedVersion: version }),
  };
  const update = { ...news, attributes };
  if (Object.keys(news).length === 1 && attributes === undefined) return state;

  const told = {
    ...device,
    ...news,
    ...(attributes === undefined
      ? {}
      : { attributes: changedAttributes("attributes", { attributes: device.attributes, changes: attributes }) }),
  };
  if (reached === undefined) {
    await recordDevice(db, update);
    return { ...state, device: told };
  }

  const { record, attempt } = reached;
  const written = await recordTransition(db, {
    attemptId: attempt.id,
    from: attempt.state,
    to: "succeeded",
    cancelOutcome: null,
    report: { ...NO_REPORT, version: version ?? null },
    device: update,
  });
  if (!written) return undefined;
  input.observe({ kind: "moved", to: "succeeded" });
  const succeeded: AttemptRecord = { ...attempt, state: "succeeded", cancelOutcome: null, closedAt: state.now };
  const closed: UpgradeRecord = { ...record, attempts: [...record.attempts.slice(0, -1), succeeded] };
  const records = history.records.map((one) => (one === record ? closed : one));
  return { ...state, device: told, history: { records } };
}

function storable(text: string | undefined): string | undefined {
  return text === undefined ? undefined : storableWord(text);
}

/** The attempt that the reported version shows to have succeeded. */
function reachedBy(
  version: string,
  { state, catalog }: { readonly state: DeviceState; readonly catalog: Catalog },
): { readonly record: UpgradeRecord; readonly attempt: AttemptRecord } | undefined {
  const { records } = state.history;
  // The common case: nothing has ever been offered, or it was settled before.
  if (records.every(({ attempts }) => attempts.at(-1)?.state === "succeeded")) return undefined;
  const position = catalog.positionOf(version);
  const record = records.find(({ firmwareId }) => catalog.firmwareById.get(firmwareId)?.position === position);
  const attempt = record?.attempts.at(-1);
  if (position === undefined || record === undefined || attempt === undefined) return undefined;
  const next = nextState({ ...attempt, confirmBy: catalog.confirmBy }, "target_version");
  return next.effect === "moved" ? { record, attempt } : undefined;
}

const NO_REPORT = {
  state: null,
  progressPercent: null,
  message: null,
  details: [],
  code: null,
  deviceTime: null,
} as const;
