import { BlockList, isIP } from "node:net";

/** Ranges that proxies usually stand in. */
const NAMED_RANGES: Readonly<Record<string, readonly string[]>> = {
  loopback: ["127.0.0.0/8", "::1/128"],
  linklocal: ["169.254.0.0/16", "fe80::/10"],
  uniquelocal: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"],
};

/** Says whether an IP address is within one of the addresses, subnets and named ranges. */
export function trustOf(trustedProxies: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const range of trustedProxies.flatMap((each) => NAMED_RANGES[each] ?? each)) {
    const [address = "", bits] = range.split("/");
    const family = familyOf(address);
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return (address) => list.check(address, familyOf(address));
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 6 ? "ipv6" : "ipv4";
}
