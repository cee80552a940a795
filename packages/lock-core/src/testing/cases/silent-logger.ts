import type { Logger } from "../../logger.ts";

/** For cases that lose leases on purpose. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };
