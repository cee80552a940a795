import { serveFloor } from "./floor.ts";

/** What Node can do at all. Ratios are to this one. */
const body = JSON.stringify({ hello: "world" });

await serveFloor((_request, response) => {
  response
    .writeHead(200, { "Content-Type": "application/json; charset=utf-8", "Content-Length": Buffer.byteLength(body) })
    .end(body);
});
