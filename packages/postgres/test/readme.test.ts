import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { temporaryFolder } from "./support/folder.ts"

const packageFolder = Path.resolve(import.meta.dirname, "..")

it.live("the README's program is the example, and it runs", () =>
  Effect.gen(function*() {
    const example = Path.join(packageFolder, "examples/open.ts")
    const readme = Fs.readFileSync(Path.join(packageFolder, "README.md"), "utf8")
    assert.include(readme, `\`\`\`ts\n${Fs.readFileSync(example, "utf8")}\`\`\``)
    const dataDir = yield* temporaryFolder
    const output = execFileSync(process.execPath, [example], {
      encoding: "utf8",
      env: { ...process.env, PURSER_DATABASE_URL: undefined, PURSER_DATA_DIR: dataDir }
    })
    assert.match(output, /^PostgreSQL 18\.\d+, pglite in .*, schema version \d+\n$/)
  }), 60_000)
