/** Runs `work` while `Date` in this process is off by `offsetMs`, as on a host whose clock was set wrong. */
export async function withWallClockOff(offsetMs: number, work: () => Promise<unknown>): Promise<void> {
  const RealDate = globalThis.Date;
  class WrongDate extends RealDate {
    constructor(...args: [] | [number | string | Date]) {
      super(...((args.length === 0 ? [WrongDate.now()] : args) as [number]));
    }

    static override now(): number {
      return RealDate.now() + offsetMs;
    }
  }
  globalThis.Date = WrongDate as DateConstructor;
  try {
    await work();
  } finally {
    globalThis.Date = RealDate;
  }
}
