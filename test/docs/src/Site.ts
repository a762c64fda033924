/**
 * The static site: every page of the workspace as HTML, and every file that a page links to as a listing. It is a function of the
 * files: no clock, no network, no script but the search of titles. Links are relative, so that it can be opened from a disk.
 */
import hljs from "highlight.js/lib/common"
import MarkdownIt from "markdown-it"
import { posix } from "node:path"
import { filesIn, kindOf, pagePaths, readText, resolved } from "./Pages.ts"
import { searchScript, style } from "./siteAssets.ts"

/** Files of the site, by their path in it. */
export type Site = ReadonlyMap<string, string>

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\"", "&quot;")

/** The anchor of a heading, as GitHub makes it, so that a link holds in both places. */
export const slugOf = (heading: string): string =>
  heading.trim().toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(/\s/g, "-")

const highlighted = (text: string, language: string) =>
  hljs.getLanguage(language) === undefined ? escaped(text) : hljs.highlight(text, { language }).value

const languageOf = (path: string) => {
  const ending = posix.extname(path).slice(1)
  return ({ yml: "yaml", py: "python", mjs: "js", service: "ini", timer: "ini" } as Record<string, string>)[ending] ?? ending
}

/** A diagram of states as a table: what GitHub draws, the site writes. */
const statesTable = (text: string): string | undefined => {
  const moves = [...text.matchAll(/^\s*(\[\*\]|\w+) --> (\w+)(?:: (.+))?$/gm)]
  if (!text.startsWith("stateDiagram") || moves.length === 0) return undefined
  const cell = (name: string) => name === "[*]" ? "–" : `<code>${name}</code>`
  return `<table><thead><tr><th>from</th><th>to</th><th>when</th></tr></thead><tbody>${
    moves.map(([, from, to, when]) => `<tr><td>${cell(from!)}</td><td>${cell(to!)}</td><td>${escaped(when ?? "")}</td></tr>`).join("")
  }</tbody></table>`
}

/** Where a page is in the site. */
export const placeOf = (page: string): string => page.replace(/README\.md$/, "index.html").replace(/\.md$/, ".html")

const pictures = /\.(?:svg|png)$/

/** What is linked, as a place in the site: a page, a picture, or a listing of a file or folder. */
const placeOfTarget = (path: string, pages: ReadonlySet<string>): string | undefined => {
  if (pages.has(path)) return placeOf(path)
  const kind = kindOf(path)
  if (kind === "folder") return pages.has(`${path}/README.md`) ? placeOf(`${path}/README.md`) : pages.has(`${path}/index.md`) ? placeOf(`${path}/index.md`) : `${path}/files.html`
  return kind === undefined ? undefined : pictures.test(path) ? path : `${path}.html`
}

interface Drawn {
  readonly title: string
  readonly headings: ReadonlyArray<{ readonly text: string; readonly slug: string }>
  readonly html: string
}

const draw = (page: string, pages: ReadonlySet<string>, linked: Set<string>): Drawn => {
  const headings: Array<{ text: string; slug: string; level: number }> = []
  const markdown = new MarkdownIt({ html: true, highlight: highlighted })
  const fence = markdown.renderer.rules.fence!
  markdown.renderer.rules.fence = (tokens, index, options, env, self) =>
    (tokens[index]!.info === "mermaid" ? statesTable(tokens[index]!.content) : undefined) ?? fence(tokens, index, options, env, self)
  const tokens = markdown.parse(readText(page), {})
  const rewrite = (target: string): string => {
    if (/^[a-z]+:/.test(target) || target.startsWith("#")) return target
    const [path = "", anchor] = target.split("#")
    const file = resolved(page, decodeURI(path))
    const place = placeOfTarget(file, pages)
    // A dead link stays as it is, and the check of links finds it.
    if (place === undefined) return target
    if (!pages.has(file)) linked.add(file)
    return `${posix.relative(posix.dirname(placeOf(page)), place)}${anchor === undefined ? "" : `#${anchor}`}`
  }
  for (const [index, token] of tokens.entries()) {
    for (const child of token.children ?? []) {
      for (const name of ["href", "src"]) {
        const target = child.attrGet(name)
        if (target !== null) child.attrSet(name, rewrite(String(target)))
      }
    }
    if (token.type !== "heading_open") continue
    const text = (tokens[index + 1]?.children ?? []).filter(({ type }) => type === "text" || type === "code_inline").map(({ content }) => content).join("")
    const slug = slugOf(text)
    const before = headings.filter((heading) => heading.slug === slug || heading.slug.replace(/-\d+$/, "") === slug).length
    const own = before === 0 ? slug : `${slug}-${before}`
    headings.push({ text, slug: own, level: Number(token.tag.slice(1)) })
    token.attrSet("id", own)
  }
  const html = markdown.renderer.render(tokens, markdown.options, {}).replaceAll("<table>", "<div class=\"wide\"><table>").replaceAll("</table>", "</table></div>")
  return { title: headings.find(({ level }) => level === 1)?.text ?? page, headings: headings.filter(({ level }) => level > 1), html }
}

const framed = (place: string, title: string, menu: string, body: string): string => {
  const top = posix.relative(posix.dirname(place), ".") || "."
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escaped(title)} · Purser</title><link rel="stylesheet" href="${top}/style.css"></head>
<body>
<nav aria-label="Pages"><a class="home" href="${top}/index.html">Purser</a><label>Search <input type="search" id="search" autocomplete="off"></label><ol id="found" hidden></ol>
${menu}</nav>
<main>${body}</main>
<script src="${top}/search.js" data-top="${top}"></script>
</body>
</html>
`
}

/** The menu is the list of pages of `docs/index.md`, seen from another place. */
const menuAt = (place: string, index: Drawn): string =>
  index.html.replace(/<h1[^]*?<\/h1>/, "").replaceAll(/<p>[^]*?<\/p>/g, "").replaceAll(/ id="[^"]*"/g, "")
    .replaceAll(/<\/a>[^<]*(?:<(?:code|em|strong)>[^<]*<\/\w+>[^<]*)*<\/li>/g, "</a></li>")
    .replaceAll(/href="([^":#]+)(#[^"]*)?"/g, (_, target: string) => {
      const path = posix.normalize(posix.join("docs", target))
      return `href="${posix.relative(posix.dirname(place), path)}"${path === place ? " aria-current=\"page\"" : ""}`
    })

/** Builds the site in memory. */
export const buildSite = (): Site => {
  const pages = new Set(pagePaths())
  const linked = new Set<string>()
  const drawn = new Map([...pages].map((page) => [page, draw(page, pages, linked)]))
  const index = drawn.get("docs/index.md")!
  const frame = (place: string, title: string, body: string) => framed(place, title, menuAt(place, index), body)
  const site = new Map([...drawn].map(([page, { html, title }]) => [placeOf(page), frame(placeOf(page), title, html)]))
  for (const path of [...linked].toSorted()) {
    if (pictures.test(path)) {
      site.set(path, readText(path))
    } else if (kindOf(path) === "folder") {
      const place = `${path}/files.html`
      const files = filesIn(path).map((file) => `<li><code>${escaped(posix.relative(path, file))}</code></li>`)
      site.set(place, frame(place, path, `<h1>${escaped(path)}</h1><ul>${files.join("")}</ul>`))
    } else {
      const place = `${path}.html`
      site.set(place, frame(place, path, `<h1>${escaped(path)}</h1><pre><code>${highlighted(readText(path), languageOf(path))}</code></pre>`))
    }
  }
  const entries = [...drawn].flatMap(([page, { headings, title }]) => [
    [title, placeOf(page)],
    ...headings.map(({ slug, text }) => [`${title}: ${text}`, `${placeOf(page)}#${slug}`])
  ])
  return site.set("style.css", style).set("search.js", searchScript(entries))
}

/** Links of the site that lead nowhere: no such page, or no such place on it. */
export const deadLinks = (site: Site): ReadonlyArray<string> =>
  [...site].filter(([place]) => place.endsWith(".html")).flatMap(([place, html]) =>
    // The menu is the same everywhere, but for where it is seen from.
    [...html.replaceAll(/<(pre|code)\b[^]*?<\/\1>/g, "").replace(place === "index.html" ? "" : /<nav[^]*?<\/nav>/, "").matchAll(/\b(?:href|src)="([^"]*)"/g)].flatMap(({ 1: link }) => {
      if (/^(?:https:|mailto:)/.test(link!)) return []
      const [path = "", anchor] = link!.split("#")
      const target = path === "" ? place : posix.normalize(posix.join(posix.dirname(place), path))
      const found = site.get(target)
      if (found === undefined) return [`${place}: ${link} leads to nothing`]
      return anchor === undefined || anchor === "" || found.includes(` id="${decodeURI(anchor)}"`) ? [] : [`${place}: ${link} names no heading there`]
    })
  )
