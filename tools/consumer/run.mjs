import { LockFactory, MemoryStore } from "@ota/lock-core";
import { storeContract } from "@ota/lock-core/testing";
import { RedisStore } from "@ota/lock-redis";

const lease = await new LockFactory(new MemoryStore()).createLock("k").acquire();
const outcome = await lease.release();
if (outcome !== "released") throw new Error(outcome);
if (typeof RedisStore !== "function" || typeof storeContract !== "function") throw new Error("an export is missing");
