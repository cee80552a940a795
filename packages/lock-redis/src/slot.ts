/** What lies between the first `{` and the first `}` behind it, unless that is nothing. */
export function hashTag(key: string): string | undefined {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open);
  return close > open + 1 ? key.slice(open + 1, close) : undefined;
}

/** The part of a key that decides its slot: its hash tag, or all of it. */
export function hashedPart(key: string): string {
  return hashTag(key) ?? key;
}

/** The cluster slot of a key, 0 … 16383: CRC16 (XMODEM) of the part that counts, as the Redis Cluster specification says. */
export function slotOf(key: string): number {
  let crc = 0;
  for (const byte of Buffer.from(hashedPart(key))) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  }
  return crc & 0x3fff;
}
