/** The page's only style sheet: system fonts, light and dark, readable on a phone and on paper. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --paper: #fff; --ink: #1c2128; --soft: #59636e; --line: #d9dee4; --wash: #f5f7f9; --link: #0a58ca;
  --get: #0b6e4f; --post: #0a58ca; --patch: #8a5a00; --delete: #b02a37;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171b; --ink: #e3e7ec; --soft: #9aa4af; --line: #30363d; --wash: #1c2026; --link: #79b0ff;
    --get: #4cc38a; --post: #79b0ff; --patch: #e2a93b; --delete: #ff8a8a;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
code, pre { font: 0.875em/1.5 ui-monospace, "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
code { overflow-wrap: anywhere; }
small { color: var(--soft); font-size: 0.85rem; }
p { margin: 0.5rem 0; max-width: 46rem; }
.layout { display: grid; grid-template-columns: 18rem minmax(0, 1fr); max-width: 82rem; margin: 0 auto; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.5rem 1rem 2rem 1.5rem; border-right: 1px solid var(--line); font-size: 0.9rem; }
nav h2 { margin: 1.25rem 0 0.25rem; font-size: 0.75rem; letter-spacing: 0.06em; text-transform: uppercase; color: var(--soft); }
nav ul { margin: 0; padding: 0; list-style: none; }
nav li a { display: block; padding: 0.15rem 0; color: var(--ink); }
main { padding: 1.5rem 2.5rem 6rem; min-width: 0; }
h1 { margin: 0 0 0.25rem; font-size: 1.75rem; line-height: 1.2; }
main > section > h2 { margin: 3rem 0 0; padding-bottom: 0.35rem; border-bottom: 2px solid var(--line); font-size: 1.35rem; }
article { padding: 1.75rem 0 1.25rem; border-bottom: 1px solid var(--line); }
article h3 { margin: 0; font-size: 1.1rem; }
article h3 a { color: inherit; }
h4 { margin: 1.25rem 0 0.25rem; font-size: 0.9rem; }
h4 small { font-weight: normal; }
.narrow { display: none; }
.call { display: flex; gap: 0.6rem; align-items: baseline; margin: 0.35rem 0 0.5rem; }
.method { font-weight: 700; }
.GET { color: var(--get); } .POST { color: var(--post); } .PATCH, .PUT { color: var(--patch); } .DELETE { color: var(--delete); }
.auth { color: var(--soft); font-size: 0.9rem; }
table { width: 100%; border-collapse: collapse; font-size: 0.9rem; }
th, td { padding: 0.4rem 0.75rem 0.4rem 0; border-top: 1px solid var(--line); text-align: left; vertical-align: top; font-weight: normal; }
tr:first-child > * { border-top: 0; }
th { width: 16rem; }
th small { margin-left: 0.5rem; }
td small { display: block; }
td p { margin: 0; }
tr:target > * { background: var(--wash); }
.type { color: var(--soft); }
pre { margin: 0.5rem 0; padding: 0.75rem 1rem; overflow-x: auto; background: var(--wash); border: 1px solid var(--line); border-radius: 6px; }
details { margin: 0.4rem 0; }
summary { cursor: pointer; }
details > :not(summary) { width: calc(100% - 1.1rem); margin-left: 1.1rem; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--paper); padding: 0.5rem; }
@media (max-width: 60rem) {
  .layout { display: flex; flex-direction: column-reverse; }
  .narrow { display: inline; }
  nav { position: static; height: auto; border-right: 0; border-top: 2px solid var(--line); padding: 1rem; }
  main { padding: 1rem 1rem 3rem; }
  th, td { display: block; padding: 0.2rem 0; border: 0; width: auto; }
  tr { display: block; padding: 0.5rem 0; border-top: 1px solid var(--line); }
}
@media print { nav { display: none; } .layout { display: block; } }
`;
