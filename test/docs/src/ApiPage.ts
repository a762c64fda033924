/** The page of the API: what each published package exports, with the first sentence of its documentation. */
import { posix } from "node:path"
import { readText } from "./Pages.ts"

interface Export {
  readonly name: string
  readonly kind: string
  readonly says: string
}

interface Module {
  readonly path: string
  readonly says: string
  readonly exports: ReadonlyArray<Export>
}

/** The first sentence of a comment, on one line. A full stop inside backticks, or before a small letter, ends nothing. */
const firstSentence = (comment: string): string => {
  const text = comment.replaceAll(/^\s*\/?\*+\/? ?/gm, "").replaceAll(/\{@link (\w+)\}/g, "`$1`").split(/\n\s*\n| {4}/)[0]!.replaceAll(/\s+/g, " ").trim()
  return (/^(?:`[^`]*`|[^`])*?[.!?](?= [A-Z`"]|$)/.exec(text)?.[0] ?? text).replaceAll("|", "\\|").replaceAll("<", "&lt;")
}

const declarations = /(?:\/\*\*((?:[^*]|\*(?!\/))*)\*\/\s*)?^export (?:declare )?(?:abstract )?(const|class|function\*?|interface|type) (\w+)/gm

const readModule = (path: string): Module => {
  const text = readText(path)
  const seen = new Map<string, Export>()
  for (const { 0: whole, 1: comment, 2: kind, 3: name, index } of text.matchAll(declarations)) {
    const list = /^ = typeof (\w+)\[number\]/.exec(text.slice(index + whole.length))?.[1]
    const says = firstSentence(comment ?? "") || (list === undefined ? "" : `One of \`${list}\`.`)
    if (!seen.has(name!)) seen.set(name!, { name: name!, kind: kind === "const" ? "value" : kind!.replace("*", ""), says })
  }
  return { path, says: firstSentence(/^\/\*\*([^]*?)\*\//.exec(text)?.[1] ?? ""), exports: [...seen.values()] }
}

const modulesOf = (folder: string): ReadonlyArray<Module> =>
  [...readText(`${folder}/src/index.ts`).matchAll(/^export (?:\*|(?:type )?\{[^}]*\}) (?:as \w+ )?from "\.\/([^"]+)"/gm)].map((match) => readModule(posix.join(folder, "src", match[1]!)))

const folders = [...["purser", "core", "engine", "postgres", "stripe", "transport-zeromq", "stripe-sim", "testkit"].map((name) => `packages/${name}`), "apps/spend-cap-proxy", "apps/console"]

const sectionOf = (folder: string): string => {
  const { description, name: id } = JSON.parse(readText(`${folder}/package.json`)) as { readonly description: string; readonly name: string }
  const modules = modulesOf(folder).toSorted((a, b) => a.path.localeCompare(b.path, "en")).filter(({ exports }) => exports.length > 0)
  const rows = modules.flatMap(({ exports, path }) => exports.map(({ kind, name: one, says }) => `| [\`${one}\`](../../${path}) | ${kind} | ${says} |`))
  return `## \`${id}\`\n\n${description}. Its [README](../../${folder}/README.md) has a program that runs.\n\n| export | kind | is |\n|---|---|---|\n${rows.join("\n")}\n`
}

/** The page. */
export const apiPage = (): string => `# API

What each package exports, with the first sentence of its documentation; the rest is at the name in your editor, and behind each link. This page is generated
(\`pnpm docs:write\`), and a test compares it. Whole signatures, which change only on purpose, are in \`test/architecture/api\`.

A program without Effect needs \`Purser.make\` of the first package and little else. One with Effect composes the layers of the others
([architecture](../architecture.md)).

${folders.map(sectionOf).join("\n")}`
