import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { startRedis, startTcpProxy } from "@ota/testkit";

await using redis = await startRedis();
await using proxy = await startTcpProxy({ target: redis });

// The server executes the command, and the client never hears of it.
proxy.cutBeforeReply();
const client = connect(proxy.port, proxy.host);
client.write("SET greeting hello\r\n");
await once(client, "close");

assert.equal(client.bytesRead, 0);
assert.equal(await redis.cli("GET", "greeting"), "hello");
