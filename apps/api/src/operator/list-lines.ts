import { pipeline, Readable } from "node:stream";
import { CsvError, parse } from "csv-parse";

/** One line of a list as it was written: its fields by name, or what is wrong with it. */
export type ListLine =
  | { readonly line: number; readonly fields: unknown }
  | { readonly line: number; readonly problem: LineFault };

/** What is wrong with a line as a whole. */
export interface LineFault {
  readonly code: "INVALID_LINE" | "LINE_TOO_LONG";
  readonly message: string;
}

/** Far above any device's line: what is longer is no list of devices. */
const MAX_LINE_LENGTH = 65_536;

/** Reads JSON, one value a line. Empty lines are passed over. */
export async function* jsonLines(text: AsyncIterable<string>): AsyncGenerator<ListLine> {
  let line = 1;
  for await (const written of linesOf(text)) {
    if (written === undefined) yield { line, problem: tooLong() };
    else if (written.trim() !== "") yield parsedLine(line, written);
    line += 1;
  }
}

function parsedLine(line: number, written: string): ListLine {
  try {
    return { line, fields: JSON.parse(written) };
  } catch {
    // The parser's own message quotes the line, which may hold a token.
    return { line, problem: { code: "INVALID_LINE", message: "not valid JSON" } };
  }
}

/** The lines of a text without their ends; `undefined` for one that is too long, which is not kept. */
async function* linesOf(text: AsyncIterable<string>): AsyncGenerator<string | undefined> {
  let rest = "";
  let tooLong = false;
  for await (const piece of text) {
    for (const [index, part] of piece.split("\n").entries()) {
      if (index > 0) {
        yield tooLong ? undefined : rest;
        rest = "";
        tooLong = false;
      }
      tooLong ||= rest.length + part.length > MAX_LINE_LENGTH;
      rest = tooLong ? "" : rest + part;
    }
  }
  if (tooLong) yield undefined;
  else if (rest !== "") yield rest;
}

/**
 * Reads CSV (RFC 4180) whose first line names the columns; a field that is empty is left out. The first line that cannot
 * be read is the last one: where the next begins is not known. Where the column is missing that every line needs, that is
 * told once, of the first line.
 */
export async function* csvLines(
  text: AsyncIterable<string>,
  { required }: { readonly required: string },
): AsyncGenerator<ListLine> {
  // Kept here as well: what the parser has read when it meets an error, its stream does not give out.
  const read: CsvLine[] = [];
  const parser = parse({
    on_record: (record: string[], { lines: line }) => {
      read.push({ line, record });
      return record;
    },
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: MAX_LINE_LENGTH,
  });
  // Whatever ends the text early ends the parser, and is thrown by the loop.
  pipeline(Readable.from(text), parser, () => {});
  const toLine = columnsFromFirst(required);
  try {
    for await (const _ of parser) yield* read.splice(0).flatMap(toLine);
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    yield* read.splice(0).flatMap(toLine);
    const line = parser.info.lines;
    yield { line, problem: error.code === "CSV_MAX_RECORD_SIZE" ? tooLong() : invalid("not valid CSV") };
  }
}

interface CsvLine {
  readonly line: number;
  readonly record: readonly string[];
}

/** Makes lines with the columns that the first one names; where it is wrong, nothing of the list can be read. */
function columnsFromFirst(required: string): (read: CsvLine) => readonly ListLine[] {
  let columns: readonly string[] | undefined;
  let readable = true;
  return ({ line, record }) => {
    if (!readable) return [];
    if (columns === undefined) {
      columns = record;
      const fault = columnFault(columns, required);
      readable = fault === undefined;
      return fault === undefined ? [] : [{ line, problem: invalid(fault) }];
    }
    if (record.length === columns.length) return [{ line, fields: fieldsOf(columns, record) }];
    return [{ line, problem: invalid(`${record.length} fields, where the header has ${columns.length}`) }];
  };
}

function columnFault(columns: readonly string[], required: string): string | undefined {
  if (new Set(columns).size < columns.length) return "a column that comes twice";
  // What is there instead is not told: without a header it is a device, perhaps with its token.
  return columns.includes(required)
    ? undefined
    : `no column ${required}: this line names the columns, separated by commas, as they are spelled in the reference`;
}

function fieldsOf(columns: readonly string[], record: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(columns.flatMap((name, index) => (record[index] ? [[name, record[index]]] : [])));
}

function invalid(message: string): LineFault {
  return { code: "INVALID_LINE", message };
}

function tooLong(): LineFault {
  return { code: "LINE_TOO_LONG", message: `longer than ${MAX_LINE_LENGTH} characters` };
}
