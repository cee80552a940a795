import { parseArgs } from "node:util";
import { collectByCommand } from "./collect-command.ts";
import { processEnvironment, readConfig } from "./config.ts";
import { helpText } from "./config-reference.ts";
import { createLogger, standardOutput } from "./logging.ts";
import { createOperatorKeyByCommand } from "./operator-key-command.ts";
import { runService } from "./run-service.ts";
import { startFailure } from "./start-failure.ts";
import { serviceVersion } from "./version.ts";

const USAGE = `Usage: main.js                                      run the service
       main.js operator-key create --name <name>    make an operator key and print it (with DATABASE_URL)
       main.js artifacts collect [--dry-run]        delete the files that belong to no firmware
       main.js --help | --version
`;

await main(process.argv.slice(2));

/** Sets the exit code: 0 done, 1 failed, 2 not understood. */
async function main(args: string[]): Promise<void> {
  const command = parse(args);
  if (command === undefined) {
    process.stderr.write(USAGE);
    process.exitCode = 2;
    return;
  }
  if (command.kind === "print") {
    process.stdout.write(command.text);
    return;
  }
  try {
    const config = readConfig(processEnvironment());
    if (command.kind === "create-key") {
      process.stdout.write(`${await createOperatorKeyByCommand(config, command.name)}\n`);
      return;
    }
    if (command.kind === "collect") {
      process.stdout.write(`${JSON.stringify(await collectByCommand(config, command))}\n`);
      return;
    }
    const output = standardOutput();
    const logger = createLogger({ level: config.logLevel, destination: output });
    // Nothing is known about the state of a process after such an error. Node's own report would show all that hangs on
    // it; a database error carries the parameters of its statement.
    process.on("uncaughtException", (error) => {
      logger.fatal({ err: error }, "an error that nobody has handled ends the service");
      output.flushSync();
      process.exit(1);
    });
    try {
      process.exitCode = await runService(config, logger);
    } finally {
      output.flushSync();
    }
  } catch (error) {
    process.stderr.write(`${startFailure(error)}\n`);
    process.exitCode = 1;
  }
}

type Command =
  | { readonly kind: "serve" }
  | { readonly kind: "create-key"; readonly name: string }
  | { readonly kind: "collect"; readonly dryRun: boolean }
  | { readonly kind: "print"; readonly text: string };

/** `undefined`: not understood. */
function parse(args: string[]): Command | undefined {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        help: { type: "boolean", short: "h" },
        version: { type: "boolean" },
        name: { type: "string" },
        "dry-run": { type: "boolean" },
      },
    });
    const { help, version, name } = values;
    if (help) return { kind: "print", text: `${USAGE}\n${helpText()}` };
    if (version) return { kind: "print", text: `${serviceVersion}\n` };
    const words = positionals.join(" ");
    const dryRun = values["dry-run"];
    if (words === "artifacts collect" && name === undefined) return { kind: "collect", dryRun: dryRun === true };
    if (dryRun !== undefined) return undefined;
    if (words === "" && name === undefined) return { kind: "serve" };
    return words === "operator-key create" && name !== undefined ? { kind: "create-key", name } : undefined;
  } catch {
    // parseArgs throws on an option that it does not know.
    return undefined;
  }
}
