/** Writes what was measured into pages, between markers, so that no text says other than the results. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"

const between = (name: string) => new RegExp(`(<!-- results: ${name} -->\n)[^]*?(<!-- end of results -->)`)

/** Replaces what stands between `<!-- results: NAME -->` and `<!-- end of results -->`; a part without markers is left out. */
export const writePage = (file: string, parts: Readonly<Record<string, string>>): void => {
  if (!existsSync(file)) return
  let text = readFileSync(file, "utf8")
  for (const [name, part] of Object.entries(parts)) text = text.replace(between(name), (_, begin: string, end: string) => `${begin}\n${part}\n\n${end}`)
  writeFileSync(file, text)
}
