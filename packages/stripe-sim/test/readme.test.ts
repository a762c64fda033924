import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"

const folder = join(import.meta.dirname, "..")

describe("the README", () => {
  it("shows the examples that are in the folder", () => {
    for (const name of ["charge", "webhooks"]) {
      const example = readFileSync(join(folder, `examples/${name}.ts`), "utf8")
      assert.include(readFileSync(join(folder, "README.md"), "utf8"), `\`\`\`ts\n${example}\`\`\``)
    }
  })

  const run = (name: string) =>
    Effect.callback<string>((resume) => {
      execFile(process.execPath, [join(folder, `examples/${name}.ts`)], (error, stdout) =>
        resume(error === null ? Effect.succeed(stdout) : Effect.die(error)))
    })

  it.effect("and they run: a confirm that was done although it answered 500", () =>
    Effect.gen(function*() {
      const printed = yield* run("charge")
      const [lost, again] = printed.split("\n")
      assert.strictEqual(lost, "500 api_error")
      assert.strictEqual(again, "400 payment_intent_unexpected_state")
      assert.match(printed, /payments: 1,\s+amountMinor: 1999/)
    }), 30_000)

  it.effect("and webhooks out of order, without a socket", () =>
    Effect.gen(function*() {
      const printed = yield* run("webhooks")
      assert.deepStrictEqual(printed.split("\n").slice(0, 3), ["charge.refunded", "charge.succeeded", "charge.refunded (again)"])
      assert.match(printed, /refundedMinor: 1000/)
    }), 30_000)

  it.effect("names each admin endpoint and each option that there is", () =>
    Effect.sync(() => {
      const readme = readFileSync(join(folder, "README.md"), "utf8")
      const admin = readFileSync(join(folder, "src/internal/admin.ts"), "utf8")
      const paths = new Set([...admin.matchAll(/"(?:(?:GET|POST|DELETE) )?(\/_sim\/[a-z_/]+?)\/?"/g)].map((match) => match[1] ?? ""))
      assert.isAtLeast(paths.size, 15)
      for (const path of paths) assert.include(readme, path)
      const source = readFileSync(join(folder, "src/StripeSim.ts"), "utf8")
      const options = /interface StripeSimOptions \{([^]*?)\n\}/.exec(source)?.[1] ?? ""
      const names = [...options.matchAll(/readonly (\w+)\?:/g)].map((match) => match[1] ?? "")
      assert.isAtLeast(names.length, 10)
      for (const name of names) assert.include(readme, `\`${name}\``)
    }))
})
