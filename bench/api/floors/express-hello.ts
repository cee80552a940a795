import express from "express";
import { serveFloor } from "./floor.ts";

/** What Express costs, with its defaults. */
const app = express();
app.get("/", (_request, response) => {
  response.json({ hello: "world" });
});

await serveFloor(app);
