import { VARIABLES, type VariableName } from "./config-variables.ts";

/** A variable of the environment that has no effect, although it seems to be meant for the service. */
export interface UnknownVariable {
  readonly name: string;
  /** The variable that it is most likely a misspelling of. */
  readonly meant: VariableName | undefined;
}

/**
 * Shorter names have too many neighbours that mean something else: PORT has PORTS and SPORT, HOST has HOSTS and GHOST.
 */
const SHORTEST_COMPARED = 8;

/**
 * Variables that begin as ours do and are none of them, and those that are one slip away from one of ours: a letter
 * missing, added, replaced, or two exchanged, or another case. Of the latter none while the right one is set or they are
 * empty: then nothing is missing, and they are somebody else's.
 */
export function unknownVariables(environment: NodeJS.ProcessEnv): readonly UnknownVariable[] {
  return Object.keys(environment).flatMap((name) => {
    if (Object.hasOwn(VARIABLES, name)) return [];
    const meant = NAMES.find((ours) => isOneSlip(name.toUpperCase(), ours));
    const isMissing = meant !== undefined && !environment[meant] && environment[name];
    return isMissing || /^(OTA|LOCK)_/.test(name) ? [{ name, meant }] : [];
  });
}

const NAMES = (Object.keys(VARIABLES) as VariableName[]).filter((name) => name.length >= SHORTEST_COMPARED);

/** Whether at most one letter is missing, added or replaced, or two neighbours have changed places. */
function isOneSlip(written: string, meant: string): boolean {
  if (written === meant) return true;
  let at = 0;
  while (written[at] === meant[at]) at += 1;
  const [rest, wanted] = [written.slice(at), meant.slice(at)];
  return (
    rest.slice(1) === wanted.slice(1) ||
    rest === wanted.slice(1) ||
    rest.slice(1) === wanted ||
    (rest[0] === wanted[1] && rest[1] === wanted[0] && rest.slice(2) === wanted.slice(2))
  );
}
