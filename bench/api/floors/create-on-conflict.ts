import express from "express";
import { FLOOR_FIRMWARE_ID, type FloorCheck, floorDatabase, serveFloor } from "./floor.ts";

/** A record made without a lock: the constraint alone decides whose it is. */
const sql = floorDatabase();
const app = express();
app.use(express.json());
app.post("/check", async (request, response) => {
  const { serial } = request.body as FloorCheck;
  const [made] = await sql`
    insert into floor_constrained (device_id, firmware_id)
    select id, ${FLOOR_FIRMWARE_ID}::bigint from devices where serial = ${serial}
    on conflict (device_id, firmware_id) do nothing
    returning id`;
  response.json({ decision: "update", created: made !== undefined });
});

await serveFloor(app);
