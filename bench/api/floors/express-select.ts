import express from "express";
import { floorDatabase, serveFloor } from "./floor.ts";

/** Express and one prepared statement: a device by its serial. */
const sql = floorDatabase();
const app = express();
app.get("/devices/:serial", async (request, response) => {
  const [device] = await sql`select id, serial, reported_version from devices where serial = ${request.params.serial}`;
  response.json({ device });
});

await serveFloor(app);
