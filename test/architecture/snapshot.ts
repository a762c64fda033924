/** The committed list of names that packages export: a change of the public surface is a change of a file that people see. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const file = join(import.meta.dirname, "exports.json")

/** Names by package. */
export type Surface = Readonly<Record<string, ReadonlyArray<string>>>

/** What came and what went. */
export const surfaceViolations = (kept: Surface, now: Surface): ReadonlyArray<string> =>
  [...new Set([...Object.keys(kept), ...Object.keys(now)])].flatMap((name) => {
    const [before, after] = [kept[name] ?? [], now[name] ?? []]
    return [
      ...after.filter((one) => !before.includes(one)).map((one) => `${name} exports ${one}, which is new`),
      ...before.filter((one) => !after.includes(one)).map((one) => `${name} does not export ${one} any more`)
    ]
  })

/** Compares with the committed list; with `UPDATE_EXPORTS=1` in the environment it is written anew first. */
export const snapshotViolations = (now: Surface): ReadonlyArray<string> => {
  if (process.env["UPDATE_EXPORTS"] === "1") writeFileSync(file, `${JSON.stringify(now, null, 2)}\n`)
  const kept: Surface = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {}
  return surfaceViolations(kept, now)
}
