const EMPTY: Readonly<Record<string, string | string[]>> = Object.freeze({});

/** The query of a request's URL; a name that comes several times has all its values, which no schema of one value takes. */
export function queryOf(url: string | undefined): Readonly<Record<string, string | string[]>> {
  const start = url?.indexOf("?") ?? -1;
  if (url === undefined || start === -1) return EMPTY;
  const values = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(url.slice(start))) {
    const earlier = values.get(name);
    values.set(name, earlier === undefined ? value : [...(Array.isArray(earlier) ? earlier : [earlier]), value]);
  }
  return Object.fromEntries(values);
}
