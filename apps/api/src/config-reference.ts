import { VARIABLE_GROUPS, type Variable } from "./config-variable.ts";
import { VARIABLES } from "./config-variables.ts";

/** The reference of all environment variables as a Markdown page, made of the table that reads them. */
export function configurationPage(): string {
  const sections = VARIABLE_GROUPS.map((group) => {
    const entries = Object.entries<Variable>(VARIABLES).filter(([, variable]) => variable.group === group);
    return [`## ${group}`, ...entries.map(([name, variable]) => entryOf(name, variable))].join("\n\n");
  });
  return `${[INTRODUCTION.trim(), ...sections].join("\n\n")}\n`;
}

const INTRODUCTION = `
# Configuration

The service is configured by environment variables, read once at its start. It does not start while one of them is wrong, and
names all that are. A variable that is empty counts as not set. A variable that begins with \`OTA_\` or \`LOCK_\` and is not
listed here is reported as a warning, and so is one that is a letter away from one listed here (\`REDIS_URI\`, \`DATABSE_URL\`)
while that is not set.

This page is made from the source (\`pnpm --filter @ota/api configuration-page\`); a test compares the two.
`;

function entryOf(name: string, variable: Variable): string {
  const { default: text, defaultText } = variable;
  const fallback = text === undefined ? defaultText : text === "" ? "empty" : `\`${text}\``;
  return [
    `### \`${name}\``,
    "",
    variable.about,
    "",
    `- Accepts: ${variable.accepts}.`,
    `- Default: ${fallback}.`,
    ...(variable.secret ? ["- Secret: never logged or shown."] : []),
  ].join("\n");
}

/** All environment variables in short, for the command line. */
export function helpText(): string {
  const lines = VARIABLE_GROUPS.flatMap((group) => [
    `${group}:`,
    ...Object.entries<Variable>(VARIABLES)
      .filter(([, variable]) => variable.group === group)
      .map(
        ([name, { accepts, default: text, defaultText }]) =>
          `  ${name.padEnd(34)}${accepts}; default: ${(text ?? defaultText) || "empty"}`,
      ),
    "",
  ]);
  return ["Environment variables (docs/configuration.md says what each of them does):", "", ...lines].join("\n");
}
