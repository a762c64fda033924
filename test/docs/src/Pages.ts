/** The pages of the workspace as text, and what stands on them: headings, blocks of code. It judges nothing. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join, posix } from "node:path"

/** The folder that holds the workspace. */
export const root = join(import.meta.dirname, "../../..")

/** Text of a file by its path from the root. */
export const readText = (path: string): string => readFileSync(join(root, path), "utf8")

const under = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder), { withFileTypes: true }).filter(({ name }) => !["node_modules", "dist", "site"].includes(name)).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    return entry.isDirectory() ? under(path) : entry.isFile() ? [path] : []
  })

/** Files below a folder, links not followed. */
export const filesIn = (folder: string): ReadonlyArray<string> => existsSync(join(root, folder)) ? under(folder).toSorted() : []

const readmesOf = (parent: string) =>
  readdirSync(join(root, parent)).map((name) => `${parent}/${name}/README.md`).filter((path) => existsSync(join(root, path)))

/** Every page that the site has, by its path from the root. */
export const pagePaths = (): ReadonlyArray<string> =>
  [
    ...["README.md", "CONTRIBUTING.md", "examples/README.md", "ops/README.md"].filter((path) => existsSync(join(root, path))),
    ...readmesOf("packages"),
    ...readmesOf("apps"),
    ...filesIn("docs").filter((path) => path.endsWith(".md"))
  ].toSorted()

/** Whether a path from the root is a file, a folder or nothing. */
export const kindOf = (path: string): "file" | "folder" | undefined => {
  const stat = statSync(join(root, path), { throwIfNoEntry: false })
  return stat === undefined ? undefined : stat.isDirectory() ? "folder" : "file"
}

/** A block of code: its language, the words behind it, its text, and the line at which it begins. */
export interface Block {
  readonly language: string
  readonly title: string
  readonly text: string
  readonly line: number
}

/** Blocks between fences, in order; those of a list without the list's indent. */
export const blocksOf = (page: string): ReadonlyArray<Block> =>
  [...page.matchAll(/^( *)```([\w+-]*) ?([^\n]*)\n([^]*?)^\1```$/gm)].map(({ 1: indent, 2: language, 3: title, 4: text, index }) => ({
    language: language!, title: title!, text: text!.replaceAll(new RegExp(`^${indent}`, "gm"), ""), line: page.slice(0, index).split("\n").length
  }))

/** A path as a page writes it, from the root: `../x.md` on `docs/how-to/y.md` is `docs/x.md`. */
export const resolved = (page: string, target: string): string => posix.normalize(posix.join(posix.dirname(page), target)).replace(/\/$/, "")
