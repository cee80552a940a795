/** What PHP's `serialize()` can have written, as far as it is read here: maps stand for PHP's arrays. */
export type PhpValue = null | boolean | number | string | PhpMap;
export type PhpMap = ReadonlyMap<string, PhpValue>;

/** Deeper than any state of a lock store goes: a hostile text must not use up the stack. */
const MAX_DEPTH = 8;

/** Wide enough for every length and count of a text that is read at all. */
const MAX_DIGITS = 9;

/**
 * The properties of one object of the given class, from what PHP's `serialize()` wrote: private ones by their bare names.
 *
 * It reads scalars, strings and arrays. References, further objects and enumerations are refused, and so are lengths and
 * counts that are wrong, names that come twice, and bytes after the end.
 *
 * @throws PhpSyntaxError saying where the text is none of that. It quotes nothing of the text.
 */
export function readPhpObject(text: string, className: string): PhpMap {
  const reader = new PhpReader(text);
  const properties = reader.object(className);
  reader.end();
  return properties;
}

/** What is wrong with a text, and where. */
export class PhpSyntaxError extends Error {
  override readonly name = "PhpSyntaxError";
}

/** A string as PHP's `serialize()` writes it: lengths count bytes. */
export function phpString(text: string): string {
  return `s:${Buffer.byteLength(text)}:"${text}";`;
}

/** Reads from left to right, each byte once. */
class PhpReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(text: string) {
    this.#bytes = Buffer.from(text);
  }

  object(className: string): PhpMap {
    this.#expect("O:");
    if (this.#quoted() !== className) throw this.#error(`expected an object of ${className}`);
    this.#expect(":");
    const privatePrefix = `\0${className}\0`;
    return this.#entries((name) => (name.startsWith(privatePrefix) ? name.slice(privatePrefix.length) : name));
  }

  end(): void {
    if (this.#at < this.#bytes.length) throw this.#error("expected the end");
  }

  #value(depth: number): PhpValue {
    const kind = this.#take(2);
    switch (kind) {
      case "N;":
        return null;
      case "b:":
        return this.#until(";", /^[01]$/) === "1";
      case "i:":
        return Number(this.#until(";", /^-?\d{1,19}$/));
      case "d:":
        return this.#float();
      case "s:": {
        const text = this.#quoted();
        this.#expect(";");
        return text;
      }
      case "a:":
        if (depth >= MAX_DEPTH) throw this.#error(`expected no more than ${MAX_DEPTH} arrays in each other`);
        return this.#entries((name) => name, depth + 1);
      default:
        throw this.#error("expected null, a boolean, a number, a string or an array");
    }
  }

  /** What stands between `{` and `}` behind a count: names and values by turns. */
  #entries(nameOf: (written: string) => string, depth = 0): PhpMap {
    const count = this.#count();
    this.#expect(":{");
    const entries = new Map<string, PhpValue>();
    for (let index = 0; index < count; index += 1) {
      const written = this.#value(MAX_DEPTH);
      if (typeof written !== "string" && typeof written !== "number") throw this.#error("expected a name or a number");
      const name = nameOf(String(written));
      if (entries.has(name)) throw this.#error("expected each name once");
      entries.set(name, this.#value(depth));
    }
    this.#expect("}");
    return entries;
  }

  /** A length in bytes, and so many bytes in quotes. */
  #quoted(): string {
    const length = this.#count();
    this.#expect(':"');
    const end = this.#at + length;
    if (end > this.#bytes.length) throw this.#error("expected more bytes");
    const text = this.#decode(this.#at, end);
    this.#at = end;
    this.#expect('"');
    return text;
  }

  #count(): number {
    const from = this.#at;
    while (this.#at - from <= MAX_DIGITS && isDigit(this.#bytes[this.#at])) this.#at += 1;
    const digits = this.#at - from;
    if (digits === 0 || digits > MAX_DIGITS) throw this.#error("expected a length");
    return Number(this.#bytes.toString("latin1", from, this.#at));
  }

  #float(): number {
    const text = this.#until(";", /^(?:-?\d{1,30}(?:\.\d{1,30})?(?:E[+-]?\d{1,3})?|-?INF|NAN)$/i);
    return Number(text.replace(/INF/i, "Infinity"));
  }

  #until(mark: string, form: RegExp): string {
    const end = this.#bytes.indexOf(mark, this.#at);
    const text = end < 0 ? "" : this.#bytes.toString("latin1", this.#at, Math.min(end, this.#at + 80));
    if (!form.test(text)) throw this.#error("expected a number");
    this.#at = end + mark.length;
    return text;
  }

  #take(length: number): string {
    const taken = this.#bytes.toString("latin1", this.#at, this.#at + length);
    this.#at += length;
    return taken;
  }

  #expect(text: string): void {
    if (this.#take(text.length) !== text) throw this.#error(`expected ${text}`);
  }

  /** A length that ends within a character is a wrong one. */
  #decode(from: number, end: number): string {
    try {
      return UTF_8.decode(this.#bytes.subarray(from, end));
    } catch (cause) {
      throw this.#error("expected a length that ends between two characters", { cause });
    }
  }

  #error(expected: string, options?: ErrorOptions): PhpSyntaxError {
    return new PhpSyntaxError(`before byte ${Math.min(this.#at, this.#bytes.length)}: ${expected}`, options);
  }
}

/** A byte order mark is part of a string like any other character. */
const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 48 && byte <= 57;
}
