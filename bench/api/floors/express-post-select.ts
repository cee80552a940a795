import express from "express";
import { type FloorCheck, floorDatabase, serveFloor } from "./floor.ts";

/** The floor of a check: Express, a JSON body, one prepared statement, and a comparison for a decision. */
const sql = floorDatabase();
const app = express();
app.use(express.json());
app.post("/check", async (request, response) => {
  const { serial, version } = request.body as FloorCheck;
  const [device] = await sql`select id, serial, reported_version from devices where serial = ${serial}`;
  response.json({ decision: device?.["reported_version"] === version ? "none" : "update", serial });
});

await serveFloor(app);
