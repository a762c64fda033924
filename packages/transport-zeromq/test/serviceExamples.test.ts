import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { fileURLToPath } from "node:url"

describe("the examples of services", () => {
  for (const [name, output] of [
    ["req-rep", "Oslo 4\n"],
    ["push-pull", "100 acknowledged, 100 sent\n"],
    ["router-dealer", "250 500 750\nsold out: moon\n"],
    ["rpc", "pear 250\nmoon not for sale\nticks 1 2 3 4 5\n"]
  ] as const) {
    // It ends by itself: nothing that is left behind keeps the process.
    it(`run and end: ${name}`, () => {
      const example = fileURLToPath(new URL(`../examples/${name}.ts`, import.meta.url))
      assert.strictEqual(execFileSync(process.execPath, [example], { encoding: "utf8", timeout: 60_000 }), output)
    }, 90_000)
  }
})
