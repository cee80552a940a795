import { createHmac, timingSafeEqual } from "node:crypto";

/** Makes and checks URLs that let their bearer fetch one firmware's artifact until a given time, without a token. */
export interface ArtifactUrls {
  /**
   * An absolute URL that works for at least the validity, and at most half as long again. Within a slot of half the
   * validity all devices get the same URL, so that a cache in front of the service serves them from one copy.
   */
  sign(firmwareId: string, options: SignOptions): string;

  /**
   * Says whether a signature was made with a key that this service accepts, for that firmware and that time, and whether
   * the time is still to come.
   */
  verify(signed: SignedArtifact): "valid" | "expired" | "forged";
}

/** What a signed URL is made of beside its firmware. */
export interface SignOptions {
  /** The base of the URL, without a trailing slash. */
  readonly publicUrl: string;
  /**
   * Whether it still works when the firmware is withdrawn: for a device that has the file and is installing it.
   * @default false
   */
  readonly finishing?: boolean;
}

/** What a signed URL says. */
export interface SignedArtifact {
  readonly firmwareId: string;
  /** Seconds since 1970. */
  readonly expires: number;
  /** As {@link SignOptions.finishing}. */
  readonly finishing: boolean;
  /** base64url of an HMAC-SHA256. */
  readonly signature: string;
}

/** What {@link createArtifactUrls} needs. */
export interface ArtifactUrlOptions {
  /** Shared by all processes of the installation; at least 32 bytes. */
  readonly key: Uint8Array;
  /**
   * Keys whose URLs are accepted as well: those of a rotation.
   * @default none
   */
  readonly acceptedKeys?: readonly Uint8Array[];
  /** How long a URL works at the least. */
  readonly validSeconds: number;
  /** @default Date.now */
  readonly nowMs?: () => number;
}

/** URLs signed with one key. No state, no I/O: any process checks what another has signed. */
export function createArtifactUrls(options: ArtifactUrlOptions): ArtifactUrls {
  const { key, acceptedKeys = [], validSeconds, nowMs = Date.now } = options;
  const slotSeconds = Math.max(1, Math.floor(validSeconds / 2));
  const nowSeconds = () => Math.floor(nowMs() / 1000);
  // Every device of a slot gets the same path, so each is made once.
  let slot = { expires: 0, paths: new Map<string, string>() };

  return {
    sign(firmwareId, { publicUrl, finishing = false }) {
      const expires = Math.ceil((nowSeconds() + validSeconds) / slotSeconds) * slotSeconds;
      if (slot.expires !== expires) slot = { expires, paths: new Map() };
      const slotKey = finishing ? `${firmwareId} finishing` : firmwareId;
      let path = slot.paths.get(slotKey);
      if (path === undefined) {
        const signature = hmac(key, { firmwareId, expires, finishing }).toString("base64url");
        const marked = finishing ? "&finishing=true" : "";
        path = `/v1/firmware/${firmwareId}/artifact?expires=${expires}${marked}&signature=${signature}`;
        slot.paths.set(slotKey, path);
      }
      return `${publicUrl}${path}`;
    },

    verify({ signature, ...signed }) {
      const given = Buffer.from(signature, "base64url");
      const fits = (by: Uint8Array): boolean => {
        const expected = hmac(by, signed);
        return given.length === expected.length && timingSafeEqual(given, expected);
      };
      if (!fits(key) && !acceptedKeys.some(fits)) return "forged";
      return signed.expires > nowSeconds() ? "valid" : "expired";
    },
  };
}

/** The first line names the purpose, so that no signature made for something else with the same key fits here. */
function hmac(key: Uint8Array, { firmwareId, expires, finishing }: Omit<SignedArtifact, "signature">): Buffer {
  const marked = finishing ? "\nfinishing" : "";
  return createHmac("sha256", key).update(`ota-artifact-v1\n${firmwareId}\n${expires}${marked}`).digest();
}
