import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"

const folder = join(import.meta.dirname, "..")

describe("the README", () => {
  it("shows the example that is in the folder", () => {
    const example = readFileSync(join(folder, "examples/charge.ts"), "utf8")
    assert.include(readFileSync(join(folder, "README.md"), "utf8"), `\`\`\`ts\n${example}\`\`\``)
  })

  it.effect("and the example runs", () =>
    Effect.gen(function*() {
      const printed = yield* Effect.callback<string>((resume) => {
        execFile(process.execPath, [join(folder, "examples/charge.ts")], (error, stdout) =>
          resume(error === null ? Effect.succeed(stdout) : Effect.die(error)))
      })
      const [lost, again] = printed.split("\n")
      assert.strictEqual(lost, "500 api_error")
      assert.strictEqual(again, "400 payment_intent_unexpected_state")
      assert.match(printed, /payments: 1,\s+amountMinor: 1999/)
    }), 30_000)
})
