/** Text that is HTML already; only {@link html} makes it. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** What can be put into an {@link html} template. Strings and numbers are escaped, lists are joined. */
export type Content = Html | string | number | undefined | readonly Content[];

/** Builds HTML; everything that is put in is escaped unless it is HTML already, so no value can become markup. */
export function html(parts: TemplateStringsArray, ...values: readonly Content[]): Html {
  return new Html(parts.reduce((text, part, index) => text + render(values[index - 1]) + part));
}

/** Our descriptions: paragraphs, and `code` in backticks. */
export function prose(text: string): Html {
  return html`${text.split(/\n{2,}/).map((paragraph) => html`<p>${inline(paragraph)}</p>`)}`;
}

/** One line of a description, with its `code`. */
export function inline(text: string): Html {
  return html`${text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function render(content: Content): string {
  if (content === undefined) return "";
  if (content instanceof Html) return content.text;
  if (typeof content === "object") return content.map(render).join("");
  return String(content).replace(/[&<>"']/g, (character) => ESCAPES[character] as string);
}
