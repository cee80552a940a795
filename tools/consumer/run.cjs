const { LockFactory, MemoryStore } = require("@ota/lock-core");
const { RedisStore } = require("@ota/lock-redis");

if (typeof RedisStore !== "function") throw new Error("an export is missing");
new LockFactory(new MemoryStore())
  .createLock("k")
  .run(() => "done")
  .then((result) => {
    if (result !== "done") process.exit(1);
  });
