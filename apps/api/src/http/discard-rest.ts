import type { IncomingMessage } from "node:http";

/** A sender of which nothing has come for so long has gone: its upload is over. */
export const SENDER_IDLE_MS = 60_000;

/** How long the rest of a refused upload is read and thrown away, so that its sender gets to read the answer. */
const DISCARD_MS = 10_000;

/**
 * Reads the rest of a refused upload and throws it away. Most clients look for an answer only when they have sent
 * everything, and a connection closed with bytes unread is reset, answer and all; so it stays open for a while.
 */
export function discardRest(raw: IncomingMessage): void {
  if (raw.complete || raw.destroyed) return;
  raw.on("error", () => {});
  raw.resume();
  const giveUp = setTimeout(() => raw.destroy(), DISCARD_MS);
  raw.once("close", () => clearTimeout(giveUp));
}
