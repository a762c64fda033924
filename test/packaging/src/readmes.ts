/** Programs that the READMEs show, with what they tell to install before them. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { publishedFolders, root } from "./published.ts"

/** A program of a page: the words of the `npm install` lines that stand before it. */
export interface Shown {
  readonly page: string
  readonly line: number
  readonly installs: ReadonlyArray<string>
  readonly program: string
}

/** Packages of `npm install` lines; flags and comments are none. */
const packagesOf = (shell: string): ReadonlyArray<string> =>
  shell.split("\n").flatMap((line) => /^npm install ([^#]*)/.exec(line)?.[1]!.trim().split(/\s+/) ?? []).filter((word) => !word.startsWith("-"))

/** Programs of a page, which are its `ts` blocks that import something, in order. A page that tells to install again begins anew. */
export const shownOn = (page: string, text: string): ReadonlyArray<Shown> => {
  const shown: Array<Shown> = []
  let installs: ReadonlyArray<string> = []
  for (const { 1: language, 2: block, index } of text.matchAll(/^```(sh|ts)[^\n]*\n([^]*?)^```$/gm)) {
    if (language === "ts") {
      if (/^import /m.test(block!) && installs.length > 0) shown.push({ page, line: text.slice(0, index).split("\n").length, installs, program: block! })
    } else {
      const found = packagesOf(block!)
      if (found.length > 0) installs = found
    }
  }
  return shown
}

/** Those of the README and of each package's own. */
export const allShown = (): ReadonlyArray<Shown> =>
  ["README.md", ...publishedFolders.map((folder) => `${folder}/README.md`)].filter((page) => existsSync(join(root, page))).flatMap((page) => shownOn(page, readFileSync(join(root, page), "utf8")))

/** What a project wants that follows the page, and the types of Node, which every TypeScript project has. */
export const wantedBy = ({ installs }: Shown): ReadonlyArray<string> => [...new Set([...installs, "@types/node"])]

/** Packages that a program imports. */
export const importedBy = (program: string): ReadonlyArray<string> =>
  [...new Set([...program.matchAll(/^import (?:[^"]*from )?"((?:@[\w.-]+\/)?[\w.-]+)(?:\/[^"]*)?"/gm)].map(([, name]) => name!).filter((name) => !name.startsWith("node:")))]
