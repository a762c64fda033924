/** The pages beside the code: what they list is what the code has, and what they show is what runs. */
import { posix } from "node:path"
import type { ErrorClass } from "./names.ts"

const difference = (a: ReadonlyArray<string>, b: ReadonlyArray<string>) => a.filter((one) => !b.includes(one))

/** What one list has and the other has not. */
export const listViolations = (page: string, listed: ReadonlyArray<string>, real: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...difference(real, listed).map((name) => `${page} does not list ${name}`),
  ...difference(listed, real).map((name) => `${page} lists ${name}, which does not exist`),
  ...listed.filter((name, index) => listed.indexOf(name) !== index).map((name) => `${page} lists ${name} twice`)
]

interface ErrorLine {
  readonly name: string
  readonly cells: ReadonlyArray<string>
}

/** Errors on the page: under `## \`@purser/core\``, each `### \`Tag\`` and each table row that begins with a tag. */
const errorLines = (page: string): ReadonlyArray<ErrorLine> => {
  let scope = ""
  return page.split("\n").flatMap((line) => {
    scope = /^## `(@purser\/[a-z-]+)`/.exec(line)?.[1] ?? (line.startsWith("## ") ? "" : scope)
    const tag = /^(?:### |\| )`(\w+)`/.exec(line)?.[1]
    return tag === undefined || scope === "" ? [] : [{ name: `${scope} ${tag}`, cells: line.split("|").map((cell) => cell.trim()) }]
  })
}

const wordOf = (outcome: string) => outcome.replace("_", " ")

/**
 * Differences between the page of errors and the classes: a tag that is missing or too much, and a row whose last cells
 * (money, again?) say something else than the class.
 */
export const errorPageViolations = (page: string, errors: ReadonlyArray<ErrorClass>): ReadonlyArray<string> => {
  const lines = errorLines(page)
  const nameOf = ({ scope, tag }: ErrorClass) => `${scope} ${tag}`
  const wrong = errors.flatMap((error) => {
    const cells = lines.find(({ name }) => name === nameOf(error))?.cells ?? []
    if (cells.length < 5) return []
    const again = error.isRetryable === undefined ? undefined : error.isRetryable ? "yes" : "no"
    return [
      ...(again !== undefined && cells[4] !== again ? [`${nameOf(error)}: the page says again "${cells[4]}", the class ${again}`] : []),
      ...(error.outcome !== undefined && cells[3] !== wordOf(error.outcome)
        ? [`${nameOf(error)}: the page says money "${cells[3]}", the class ${wordOf(error.outcome)}`]
        : [])
    ]
  })
  return [...listViolations("the page", lines.map(({ name }) => name), errors.map(nameOf)), ...wrong]
}

/** Files that a scope of mutation names whole: of one with `:FROM-TO` the rest is in none. */
export const wholeFilesOf = (scopes: Readonly<Record<string, { readonly mutate: ReadonlyArray<string> }>>): ReadonlyArray<string> =>
  Object.values(scopes).flatMap(({ mutate }) => mutate).filter((pattern) => !pattern.includes(":")).flatMap((pattern) => {
    const [, before, names, after] = /^(.*)\{(.*)\}(.*)$/.exec(pattern) ?? []
    return names === undefined ? [pattern] : names.split(",").map((name) => `${before}${name}${after}`)
  })

/** Names of code below a heading, up to the next one. */
export const namesBelow = (page: string, heading: string): ReadonlyArray<string> => {
  const from = page.indexOf(`\n${heading}\n`) + heading.length + 2
  return [...page.slice(from, page.indexOf("\n#", from)).matchAll(/`(\w+)`/g)].map((match) => match[1]!)
}

/** Keys that head a row of a table. */
export const keysOnPage = (page: string): ReadonlyArray<string> =>
  [...page.matchAll(/^\| `(PURSER_[A-Z0-9_]+)`/gm)].map((match) => match[1]!)

const squeeze = (text: string) => text.replaceAll(/\s+/g, " ").trim()

/** The block of a README that is a program: its text, and the block of its output when there is one right after it. */
export interface Shown {
  readonly program: string
  readonly output: string | undefined
}

/** The first `ts` block. */
export const shownIn = (readme: string): Shown | undefined => {
  const match = /^```ts\n([^]*?)^```\n(?:\s*(?:Prints?|It prints):?\s*)?(?:\n```text\n([^]*?)^```)?/m.exec(readme)
  return match === null ? undefined : { program: match[1]!, output: match[2] }
}

/** The example that a README shows, or why it shows none. */
export const exampleOf = (
  readme: string | undefined,
  examples: ReadonlyArray<{ readonly path: string; readonly text: string }>
): { readonly path: string; readonly output: string | undefined } | string => {
  if (readme === undefined) return "has no README.md"
  const shown = shownIn(readme)
  if (shown === undefined) return "README.md shows no program (a ts block)"
  const example = examples.find(({ text }) => squeeze(text) === squeeze(shown.program))
  return example === undefined
    ? "README.md shows a program that is no file of examples/"
    : { path: example.path, output: shown.output }
}

/** Places in the repository that a page names in backticks or links to, from the root; `folder` is the page's own. */
export const placesOn = (page: string, folder: string): ReadonlyArray<string> => [
  ...[...page.matchAll(/`((?:packages|apps|test|scripts|examples|docs)\/[\w./-]+)`/g)].map((match) => match[1]!),
  ...[...page.matchAll(/\]\(([^):#]+)(?:#[^)]*)?\)/g)].map((match) => posix.join(folder, match[1]!))
].filter((path) => !path.includes("NNNN"))
