import { setTimeout as sleep } from "node:timers/promises";
import { anyLamp, checks } from "./contenders.ts";
import { rssMibOf } from "./cpu.ts";
import { Clients } from "./load.ts";
import { CONNECTIONS } from "./measures.ts";
import { type Backends, startService } from "./server-process.ts";

/** The service's memory in RAM, over one long load of steady checks. */
export interface MemoryFigures {
  readonly idleMib: number;
  /** At equal distances over the load, the first one at the first tenth. */
  readonly samplesMib: readonly number[];
  readonly seconds: number;
}

/** Measures a process as its `start` script runs it, with V8's own care for memory. */
export async function measureMemory(
  backends: Backends,
  { folder, devices, seconds }: { readonly folder: string; readonly devices: number; readonly seconds: number },
): Promise<MemoryFigures> {
  await using service = await startService({ ...backends, folder });
  await sleep(1_000);
  const idleMib = rssMibOf(service.pid);
  using clients = await Clients.connect([service.port], CONNECTIONS);
  const ask = checks("none", anyLamp(devices));
  const samplesMib: number[] = [];
  for (let tenth = 1; tenth <= 10; tenth += 1) {
    await clients.run(ask, seconds * 100);
    samplesMib.push(rssMibOf(service.pid));
  }
  return { idleMib, samplesMib, seconds };
}
