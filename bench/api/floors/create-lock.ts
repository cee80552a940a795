import { randomBytes } from "node:crypto";
import express from "express";
import { Redis } from "ioredis";
import { COMPARE_AND_DELETE } from "../../locks/contenders/compare-and-delete.ts";
import { FLOOR_FIRMWARE_ID, type FloorCheck, floorDatabase, floorVariable, serveFloor } from "./floor.ts";

/** The floor of a check that creates: a lock of two commands, a SELECT, an INSERT. No transaction, no history. */
const sql = floorDatabase();
const redis = new Redis(floorVariable("REDIS_URL"));
const sha = String(await redis.script("LOAD", COMPARE_AND_DELETE));
const app = express();
app.use(express.json());
app.post("/check", async (request, response) => {
  const { serial } = request.body as FloorCheck;
  const key = `floor:${serial}`;
  const token = randomBytes(16).toString("base64");
  if ((await redis.set(key, token, "PX", 10_000, "NX")) === null) {
    response.status(503).json({ code: "BUSY" });
    return;
  }
  const [device] = await sql`
    select d.id, u.id as upgrade_id from devices d
    left join floor_locked u on u.device_id = d.id and u.firmware_id = ${FLOOR_FIRMWARE_ID}
    where d.serial = ${serial}`;
  const created = device?.["upgrade_id"] === null;
  if (created) {
    await sql`insert into floor_locked (device_id, firmware_id) values (${device["id"]}, ${FLOOR_FIRMWARE_ID})`;
  }
  await redis.evalsha(sha, 1, key, token);
  response.json({ decision: "update", created });
});

await serveFloor(app);
