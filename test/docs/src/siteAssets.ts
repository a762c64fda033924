/** What the site has beside its pages: how it looks, and the search of titles. */

/** Its one style sheet; colours follow the reader's system. */
export const style = `:root { color-scheme: light dark; --ink: #1d2630; --soft: #5a6672; --line: #d9dfe5; --paper: #fff; --tint: #f4f6f8; --accent: #0b6e4f; }
@media (prefers-color-scheme: dark) { :root { --ink: #dfe5ea; --soft: #98a4af; --line: #333d47; --paper: #14191e; --tint: #1c232a; --accent: #4fc79b; } }
* { box-sizing: border-box; }
body { margin: 0; display: grid; grid-template-columns: 17rem minmax(0, 1fr); font: 16px/1.6 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1.5rem 1rem; border-right: 1px solid var(--line); font-size: .9rem; }
nav .home { display: block; font-size: 1.3rem; font-weight: 700; margin-bottom: .5rem; }
nav h2 { font-size: .75rem; letter-spacing: .06em; text-transform: uppercase; color: var(--soft); margin: 1.2rem 0 .2rem; }
nav ul, nav ol { list-style: none; margin: 0; padding: 0; } nav li { padding: .1rem 0; }
nav input { width: 100%; padding: .3rem .5rem; border: 1px solid var(--line); border-radius: .3rem; background: var(--paper); color: inherit; }
nav [aria-current] { font-weight: 700; }
main { max-width: 60rem; padding: 2rem 2.5rem 6rem; } main img { max-width: 100%; }
a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; }
h1, h2, h3 { line-height: 1.25; } h2 { margin-top: 2.2em; } :target { scroll-margin-top: 1rem; }
pre { overflow: auto; padding: .9rem 1rem; background: var(--tint); border: 1px solid var(--line); border-radius: .4rem; font-size: .85rem; line-height: 1.45; }
code { font-family: ui-monospace, monospace; font-size: .9em; } :not(pre) > code { background: var(--tint); padding: .1em .3em; border-radius: .2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; } th, td { border: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
.hljs-comment, .hljs-meta { color: var(--soft); } .hljs-keyword, .hljs-built_in, .hljs-section { color: #8250a8; } .hljs-string, .hljs-attr { color: var(--accent); } .hljs-number, .hljs-literal, .hljs-variable { color: #b35c00; }
@media (max-width: 60rem) { body { display: block; } nav { position: static; height: auto; border: 0; } main { padding: 1rem; } }
`

/** Finds titles that hold all words that were typed. */
export const searchScript = (entries: ReadonlyArray<ReadonlyArray<string>>): string => `const entries = ${JSON.stringify(entries)}
const top_ = document.currentScript.dataset.top
const field = document.getElementById("search"), found = document.getElementById("found")
field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\\s+/).filter(Boolean)
  const hits = words.length === 0 ? [] : entries.filter(([title]) => words.every((word) => title.toLowerCase().includes(word))).slice(0, 20)
  found.hidden = hits.length === 0
  found.replaceChildren(...hits.map(([title, place]) => {
    const item = document.createElement("li"), link = document.createElement("a")
    link.href = top_ + "/" + place
    link.textContent = title
    item.append(link)
    return item
  }))
})
`
