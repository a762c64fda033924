/**
 * The arrow between packages: what a package's sources may import, and that every import is declared. Tests may import
 * more, and must declare it too.
 */
import { builtinModules } from "node:module"
import { posix } from "node:path"
import { lineAt, strip } from "./code.ts"
import { isSource, type Package, type SourceFile } from "./workspace.ts"

/** What the sources of a package may import; `node` names the built-in modules, or all of them. */
export interface Allowed {
  readonly workspace: ReadonlyArray<string>
  readonly npm: ReadonlyArray<string>
  readonly node: ReadonlyArray<string> | "all"
}

/** One import, of whatever form. */
export interface Import {
  readonly specifier: string
  readonly line: number
}

const forms = /\bfrom\s*"([^"]+)"|\bimport\s*"([^"]+)"|\bimport\s*\(\s*"([^"]+)"/g

/** Imports, re-exports and `import("…")` of a file, also of types. */
export const importsOf = (text: string): ReadonlyArray<Import> => {
  const { code, strings } = strip(text)
  return [...strings.matchAll(forms)]
    // The words must be code, and not stand in a string themselves.
    .filter((match) => /^(?:from|import)/.test(code.slice(match.index)))
    .map((match) => ({ specifier: (match[1] ?? match[2] ?? match[3])!, line: lineAt(strings, match.index) }))
}

/** `@purser/core/testing` → `@purser/core`, `effect/sql` → `effect`. */
const packageOf = (specifier: string): string => specifier.split("/").slice(0, specifier.startsWith("@") ? 2 : 1).join("/")
const isBuiltin = (specifier: string) => specifier.startsWith("node:") || builtinModules.includes(specifier)

const problemOf = (file: SourceFile, specifier: string, { folder, manifest }: Package, allowed: Allowed | undefined): string | undefined => {
  if (specifier.startsWith(".")) {
    const target = posix.normalize(posix.join(posix.dirname(file.path), specifier))
    return target.startsWith(`${folder}/`) ? undefined : "leaves its package by a path; import the package by its name"
  }
  if (isBuiltin(specifier)) {
    if (!isSource(file) || allowed === undefined || allowed.node === "all" || allowed.node.includes(specifier)) return undefined
    return `is a built-in module of Node that ${folder} may not use; put it behind a contract`
  }
  const name = packageOf(specifier)
  if (/^@purser\/[^/]+\/internal\//.test(specifier)) return "is sealed; import what the package exports"
  if (specifier === "@effect/platform-node" && isSource(file) && manifest.exports !== undefined) {
    return "loads a client of Redis with all the rest; import the module by its path, @effect/platform-node/NodeServices"
  }
  // A package that nobody can import is published as a bundle: what it imports has to be there when it is built.
  const declared = isSource(file) && manifest.exports !== undefined
    ? { ...manifest.dependencies, ...manifest.peerDependencies }
    : { [manifest.name]: "itself", ...manifest.dependencies, ...manifest.peerDependencies, ...manifest.devDependencies }
  if (!(name in declared)) return `is not declared in ${folder}/package.json`
  if (!isSource(file) || allowed === undefined) return undefined
  if (!allowed.workspace.includes(name) && !allowed.npm.includes(name)) return `is against the arrow: ${folder} may not import ${name}`
}

/** Every import that may not be. */
export const importViolations = (pkg: Package, allowed: Allowed | undefined): ReadonlyArray<string> =>
  pkg.files.flatMap((file) =>
    importsOf(file.text).flatMap(({ line, specifier }) => {
      const problem = problemOf(file, specifier, pkg, allowed)
      return problem === undefined ? [] : [`${file.path}:${line}: "${specifier}" ${problem}`]
    })
  )
