import { expect } from "vitest";
import { aDevice, aFirmware, aProduct, type UploadedFirmware } from "../support/fleet.ts";
import type { TestApi } from "../support/start-api.ts";

/** An answer, read whole. */
export interface DdiTestAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: a body is whatever JSON the service sends
  readonly body: any;
}

export interface DdiCall {
  readonly json?: unknown;
  /** A body that is sent as it is, as JSON unless the headers say something else. */
  readonly text?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Calls below the device's base, or a whole URL. */
export type DdiCaller = (method: string, path: string, init?: DdiCall) => Promise<DdiTestAnswer>;

/** Calls as a device does. */
export function ddiCaller(api: TestApi, controllerId: string, authorization: string | undefined): DdiCaller {
  const base = `${api.url}/DEFAULT/controller/v1/${controllerId}`;
  return async (method, path, { json, text, headers = {} } = {}) => {
    const body = json === undefined ? text : JSON.stringify(json);
    const response = await fetch(path.startsWith("http") ? path : `${base}${path}`, {
      method,
      redirect: "manual",
      headers: {
        ...(authorization === undefined ? {} : { authorization }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : new Uint8Array(body) }),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    const isJson = /json/.test(response.headers.get("content-type") ?? "") && bytes.length > 0;
    return {
      status: response.status,
      headers: response.headers,
      bytes,
      body: isJson ? JSON.parse(`${bytes}`) : undefined,
    };
  };
}

/** Feedback as swupdate sends it. */
export function feedback(execution: string, finished = "none", status: object = {}): object {
  return { id: 4, time: "20261129T164601", status: { execution, result: { finished }, details: [], ...status } };
}

/** A device that speaks DDI, in a product of its own. */
export interface DdiDevice {
  readonly id: string;
  readonly product: string;
  readonly serial: string;
  readonly token: string;
  readonly ddi: DdiCaller;
  /** Polls, and gives the action's id of the link. */
  actionId(link: "deploymentBase" | "cancelAction" | "confirmationBase" | "installedBase"): Promise<number>;
  /** The newest upgrade, as an operator sees it. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  upgrade(): Promise<any>;
}

/** Registers one. */
export async function aDdiDevice(api: TestApi, given: { readonly product?: string } = {}): Promise<DdiDevice> {
  const product = given.product ?? (await aProduct(api, { confirmBy: "report" }));
  const { id, serial, token } = await aDevice(api, { product });
  const ddi = ddiCaller(api, serial, `TargetToken ${token}`);
  return {
    ...{ id, product, serial, token, ddi },
    async actionId(link) {
      const { status, body } = await ddi("GET", "");
      expect(status).toBe(200);
      const href: string | undefined = body._links?.[link]?.href;
      expect(href, `${link} in ${JSON.stringify(body)}`).toBeDefined();
      return Number(new URL(href ?? "").pathname.split("/").at(-1));
    },
    async upgrade() {
      const { body } = await api.operator("GET", `/v1/upgrades?deviceId=${id}`);
      return (await api.operator("GET", `/v1/upgrades/${body.items[0].id}`)).body;
    },
  };
}

/** One with a firmware that it is offered. */
export async function anOfferedDevice(api: TestApi): Promise<DdiDevice & { readonly firmware: UploadedFirmware }> {
  const device = await aDdiDevice(api);
  const firmware = await aFirmware(api, { product: device.product });
  return { ...device, firmware };
}
