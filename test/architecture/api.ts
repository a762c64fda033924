/**
 * The API report of a package: the declarations that its users compile against, without comments, as one text. A change
 * of a public type is a change of a file that people see.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, posix } from "node:path"
import { strip } from "./code.ts"
import { importsOf } from "./imports.ts"

/** Declarations by their path in `dist`, `Money.d.ts`. */
export type Declarations = ReadonlyMap<string, string>

/** The public modules, and the sealed ones that their declarations name. */
const reached = (declarations: Declarations): ReadonlyArray<string> => {
  const found = new Set([...declarations.keys()].filter((path) => !path.includes("/")))
  for (const path of found) {
    for (const { specifier } of importsOf(declarations.get(path) ?? "")) {
      if (!specifier.startsWith(".")) continue
      found.add(posix.normalize(posix.join(posix.dirname(path), specifier)).replace(/(?:\.d)?\.[jt]s$/, ".d.ts"))
    }
  }
  return [...found].filter((path) => declarations.has(path)).toSorted()
}

/** The report of a package by its declarations. */
export const apiReport = (declarations: Declarations): string =>
  reached(declarations).map((path) => {
    const lines = strip(declarations.get(path)!).strings.split("\n").map((line) => line.trimEnd()).filter((line) => line !== "" && line !== "export {};")
    return `// ${path}\n${lines.join("\n")}\n`
  }).join("\n")

/** Declarations of a package that `tsc -b` has written. It leaves those of a module that is gone. */
export const readDeclarations = (folder: string): Declarations =>
  new Map(
    readdirSync(join(folder, "src"), { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"))
      .map((path) => path.replace(/\.ts$/, ".d.ts").replaceAll("\\", "/"))
      .map((path) => [path, readFileSync(join(folder, "dist", path), "utf8")])
  )

/** The first lines in which the committed report of this name differs; with `UPDATE_EXPORTS=1` it is written anew first. */
/** The compiler writes the members of a union in an order that differs from one build to the next, on a line and over lines. */
const unordered = (text: string): string => (text.match(/[\w$.]+|[^\s\w]/g) ?? []).toSorted().join(" ")

export const reportViolations = (name: string, now: string): ReadonlyArray<string> => {
  const file = join(import.meta.dirname, "api", `${name}.txt`)
  if (process.env["UPDATE_EXPORTS"] === "1") writeFileSync(file, now)
  const kept = existsSync(file) ? readFileSync(file, "utf8") : ""
  if (unordered(kept) === unordered(now)) return []
  const [before, after] = [kept, now].map((text) => text.split("\n"))
  const at = after!.findIndex((line, index) => line !== before![index])
  if (at === -1 && before!.length === after!.length) return []
  return [`${name}: line ${at + 1} of the report is "${before![at] ?? ""}", the code says "${after![at] ?? ""}"`]
}
