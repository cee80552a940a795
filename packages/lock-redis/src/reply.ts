/** The key holds data of another type, which is no lock. */
export class ForeignData extends Error {
  override readonly name = "ForeignData";
  readonly type: string;

  constructor(type: string) {
    super(`the key holds data of the type ${type}`);
    this.type = type;
  }
}

/** The answer is none that the scripts give. */
export class UnexpectedReply extends Error {
  override readonly name = "UnexpectedReply";
}

/**
 * What a script answered: yes (1) or no (0).
 *
 * @throws ForeignData for `{ type }`.
 * @throws UnexpectedReply for anything else, such as the `QUEUED` of a connection inside MULTI.
 */
export function readReply(reply: unknown): boolean {
  // A client with the option stringNumbers gives "1".
  if (reply === 1 || reply === "1") return true;
  if (reply === 0 || reply === "0") return false;
  if (Array.isArray(reply) && reply.length === 1) throw new ForeignData(String(reply[0]));
  throw new UnexpectedReply(`unexpected reply ${JSON.stringify(reply)?.slice(0, 80)}`);
}
