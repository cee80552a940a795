import { parseArgs } from "node:util";

/** How large the demonstration is. */
export interface DemoOptions {
  readonly devices: number;
  /** By each device, all at once. */
  readonly checks: number;
}

/** What `--help` prints. */
export const USAGE = `
Usage: pnpm demo [--devices N] [--checks N]

Starts a real service, publishes a real firmware image and lets many devices ask for it at once. Then it counts what the
service has recorded, and ends with 1 if any figure is not what the service guarantees.

  --devices N   how many devices (1 to 1000, default 50)
  --checks N    how often each device asks, all at the same moment (1 to 200, default 20)
  --help        this text

Without DATABASE_URL and REDIS_URL everything happens in a temporary folder, which is removed at the end. With them it uses
that PostgreSQL and that Redis; a product with devices stays in the database, under a name of its own.
`.trim();

/** Reads the command line. Answers what to print instead where it is not a size: the help, or what is wrong. */
export function readOptions(
  args: readonly string[],
): DemoOptions | { readonly print: string; readonly exitCode: 0 | 2 } {
  let values: { devices: string; checks: string; help: boolean };
  try {
    values = parseArgs({
      args: args.filter((arg) => arg !== "--"),
      options: {
        devices: { type: "string", default: "50" },
        checks: { type: "string", default: "20" },
        help: { type: "boolean", default: false, short: "h" },
      },
    }).values;
  } catch (error) {
    return { print: `${(error as Error).message}\n\n${USAGE}`, exitCode: 2 };
  }
  if (values.help) return { print: USAGE, exitCode: 0 };
  const devices = size(values.devices, 1000);
  const checks = size(values.checks, 200);
  if (devices === undefined) return { print: "--devices must be an integer from 1 to 1000.", exitCode: 2 };
  if (checks === undefined) return { print: "--checks must be an integer from 1 to 200.", exitCode: 2 };
  return { devices, checks };
}

function size(text: string, most: number): number | undefined {
  const number = Number(text);
  return /^\d+$/.test(text) && number >= 1 && number <= most ? number : undefined;
}
