/** Names that others rely on: ids of services and errors, names of exports, keys of the configuration, lengths of files. */
import { posix } from "node:path"
import { lineAt, strip } from "./code.ts"
import { isSource, type SourceFile } from "./workspace.ts"

/** A source file is split by concept long before this. */
export const linesMax = 400

/** Files that are longer. A shared conformance suite is a list of test cases, and tests have no limit. */
export const lengthViolations = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> =>
  files.filter((file) => isSource(file) && !file.path.endsWith("Conformance.ts")).flatMap(({ path, text }) => {
    const lines = text.trimEnd().split("\n").length
    return lines > linesMax ? [`${path}: ${lines} lines are more than ${linesMax}; split it by concept`] : []
  })

const scopeOf = (path: string) => `@purser/${path.split("/")[1]}`

/** Ids of services and references that are not `@purser/<package>/<Module>`. */
export const serviceIdViolations = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> =>
  files.filter(isSource).flatMap(({ path, text }) => {
    const { strings } = strip(text)
    const declarations = [
      ...strings.matchAll(/\bclass (\w+)\s+extends\s+Context\.Service<[^]*?>\(\)\(\s*"([^"]*)"/g),
      ...strings.matchAll(/\bconst (\w+)\s*=\s*Context\.Reference<[^]*?>\(\s*"([^"]*)"/g)
    ]
    const uses = strings.match(/\bContext\.(?:Service|Reference)</g)?.length ?? 0
    const unread = declarations.length === uses ? [] : [`${path}: ${uses} services, of which ${declarations.length} could be read`]
    return [
      ...unread,
      ...declarations.flatMap(({ 1: name, 2: id, index }) => {
        const where = `${path}:${lineAt(strings, index)}`
        if (name !== posix.basename(path, ".ts")) return [`${where}: the service ${name} belongs into ${name}.ts`]
        const expected = `${scopeOf(path)}/${name}`
        return id === expected ? [] : [`${where}: the id "${id}" must be "${expected}"`]
      })
    ]
  })

/** An error class: its package, its tag, and what its getters say where they say it plainly. */
export interface ErrorClass {
  readonly scope: string
  readonly tag: string
  readonly path: string
  readonly isRetryable: boolean | undefined
  readonly outcome: string | undefined
}

const errorForms = /\bextends\s+(?:Schema\.TaggedError<\w+>\(([^]*?)\)\(\s*"(\w+)"|Data\.TaggedError\("(\w+)"\))/g

/** Every tagged error of the sources. */
export const errorsOf = (files: ReadonlyArray<SourceFile>): ReadonlyArray<ErrorClass> =>
  files.filter(isSource).flatMap(({ path, text }) => {
    const { strings } = strip(text)
    const matches = [...strings.matchAll(errorForms)]
    return matches.map((match, index): ErrorClass => {
      const body = strings.slice(match.index, matches[index + 1]?.index)
      const retryable = /get isRetryable\(\)[^{]*\{\s*return (true|false)\b/.exec(body)?.[1]
      return {
        scope: scopeOf(path),
        tag: (match[2] ?? match[3])!,
        path,
        isRetryable: retryable === undefined ? undefined : retryable === "true",
        outcome: /get outcome\(\)[^{]*\{\s*return "(\w+)" as const/.exec(body)?.[1]
      }
    })
  })

/** Ids of errors that are not under their package's name. */
export const errorIdViolations = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> =>
  files.filter(isSource).flatMap(({ path, text }) => {
    const { strings } = strip(text)
    const prefix = /const id = [^`]*`([^`$]*)\$\{name\}`/.exec(strings)?.[1]
    return [...strings.matchAll(errorForms)].flatMap(({ 1: argument, 2: tag, index }) => {
      if (argument === undefined) return []
      const [, helper, name] = /^\s*(id\()?\s*"([^"]*)"/.exec(argument) ?? []
      const id = helper === undefined ? name : `${prefix}${name}`
      const right = id !== undefined && id.startsWith(`${scopeOf(path)}/`) && id.endsWith(`/${tag}`)
      return right ? [] : [`${path}:${lineAt(strings, index)}: the id "${id}" of ${tag} must begin with "${scopeOf(path)}/" and end with "/${tag}"`]
    })
  })

/** Keys of the configuration that the sources speak of, comments included. */
export const configKeysOf = (files: ReadonlyArray<SourceFile>): ReadonlyArray<string> =>
  [...new Set(files.filter(isSource).flatMap(({ text }) => text.match(/\bPURSER_[A-Z0-9_]*[A-Z0-9]\b/g) ?? []))].toSorted()

const declared = /^export (?:declare )?(?:abstract )?(?:const|let|class|function\*?|interface|type|namespace) (\w+)/gm
const listed = /^export (?:type )?\{([^}]*)\}/gm
const starred = /^export \* (?:as (\w+) )?from "([^"]+)"/gm

/** Names that a module exports, values and types, through every `export *`. */
export const exportsOf = (files: ReadonlyArray<SourceFile>, path: string): ReadonlyArray<string> => {
  const file = files.find((candidate) => candidate.path === path)
  if (file === undefined) return [`${path} is missing`]
  const { strings } = strip(file.text)
  const names = [
    ...[...strings.matchAll(declared)].map((match) => match[1]!),
    ...[...strings.matchAll(listed)].flatMap((match) =>
      match[1]!.split(",").map((name) => name.trim().replace(/^type /, "").split(/\s+as\s+/).at(-1)!).filter((name) => name !== "")
    ),
    ...[...strings.matchAll(starred)].flatMap(([, name, from]) =>
      name === undefined ? exportsOf(files, posix.join(posix.dirname(path), from!)) : [name]
    )
  ]
  return [...new Set(names)].toSorted()
}
