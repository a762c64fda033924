/** Stands for the schema that this code makes, as a name for what is kept of it. */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import * as Path from "node:path"

const sources = Path.join(import.meta.dirname, "..")

/** A hash of the migrations' own text. Migrations import nothing of ours, which a test sees to. Dies where the text is not there, as in a bundle. */
export const schemaHash = Effect.sync(() => {
  const hash = createHash("sha256")
  const steps = Fs.readdirSync(Path.join(sources, "migrations")).filter((name) => /\.[jt]s$/.test(name) && !name.endsWith(".d.ts")).sort()
  for (const name of [`Migrations${Path.extname(import.meta.url)}`, ...steps.map((step) => Path.join("migrations", step))]) {
    hash.update(name).update(Fs.readFileSync(Path.join(sources, name)))
  }
  return hash.digest("hex").slice(0, 16)
})
