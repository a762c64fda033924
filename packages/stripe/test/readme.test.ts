import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"

const example = new URL("../examples/charge-once.ts", import.meta.url).pathname

/** The pinned Node of the workspace: the one that runs the tests may be too old to read TypeScript. */
const node = join(dirname(createRequire(new URL("../../../package.json", import.meta.url)).resolve("node/package.json")), "bin", "node")

describe("README", () => {
  it("shows the example as it is", () => {
    const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8")
    assert.strictEqual(/```ts\n([^]*?)```/.exec(readme)?.[1], readFileSync(example, "utf8"))
  })

  it.effect("the example charges once", () =>
    Effect.gen(function*() {
      const printed = yield* Effect.callback<string>((resume) => {
        execFile(node, [example], (error, stdout, stderr) => resume(Effect.succeed(error === null ? stdout : stderr)))
      })
      assert.include(printed, "confirmed: succeeded, 1999 usd")
      assert.include(printed, "again:     succeeded")
      assert.include(printed, "payments:  1")
    }), 60_000)
})
