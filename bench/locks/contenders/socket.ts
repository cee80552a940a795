import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { address, type OpenSession, type Session, TTL_MS } from "../contender.ts";
import { COMPARE_AND_DELETE } from "./compare-and-delete.ts";

/**
 * What Node and Redis can do at all: the floor's two commands over a bare socket, each in a write of its own or, as
 * `together`, all of a tick in one write.
 */
export function openSocket({ together }: { readonly together: boolean }): OpenSession {
  return async (url) => {
    const { host, port } = address(url);
    const socket = connect({ host, port, noDelay: true });
    await once(socket, "connect");
    const send = commandSender(socket, together);
    const sha = await send(["SCRIPT", "LOAD", COMPARE_AND_DELETE], 2);
    return session(socket, sha, send);
  };
}

type Send = (command: readonly string[], replyLines?: number) => Promise<string>;

function session(socket: Socket, sha: string, send: Send): Session {
  return {
    async pair(key) {
      const token = randomBytes(32).toString("base64");
      await send(["SET", key, token, "PX", String(TTL_MS), "NX"]);
      await send(["EVALSHA", sha, "1", key, token]);
    },
    async close() {
      socket.destroy();
    },
  };
}

/** Every reply here is one line, but for that of SCRIPT LOAD, whose second line is the digest. */
function commandSender(socket: Socket, together: boolean): Send {
  const waiting: { readonly lines: number; readonly resolve: (line: string) => void }[] = [];
  let rest = "";
  let skip = 0;
  socket.setEncoding("latin1");
  socket.on("data", (text: string) => {
    const lines = (rest + text).split("\r\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const [first] = waiting;
      if (first === undefined) throw new Error(`a reply nobody asked for: ${line}`);
      if (line.startsWith("-")) throw new Error(line);
      if (++skip < first.lines) continue;
      skip = 0;
      waiting.shift()?.resolve(line);
    }
  });

  let pending = "";
  const flush = (): void => {
    socket.write(pending);
    pending = "";
  };
  return (command, replyLines = 1) => {
    const text = `*${command.length}\r\n${command.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`).join("")}`;
    if (!together) socket.write(text);
    else {
      if (pending === "") process.nextTick(flush);
      pending += text;
    }
    return new Promise((resolve) => waiting.push({ lines: replyLines, resolve }));
  };
}
