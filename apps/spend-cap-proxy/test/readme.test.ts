import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { refusalCodes } from "@purser/spend-cap-proxy"

const example = new URL("../examples/vault.ts", import.meta.url).pathname
const node = join(dirname(createRequire(new URL("../../../package.json", import.meta.url)).resolve("node/package.json")), "bin", "node")
const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")

describe("what is written", () => {
  it.effect("README shows the example as it is, and what it prints", () =>
    Effect.gen(function*() {
      const readme = read("../README.md")
      assert.strictEqual(/```ts\n([^]*?)```/.exec(readme)?.[1], read("../examples/vault.ts"))
      const printed = yield* Effect.callback<string>((resume) => {
        execFile(node, ["--disable-warning=ExperimentalWarning", example], (error, stdout, stderr) => resume(Effect.succeed(error === null ? stdout : stderr)))
      })
      assert.strictEqual(printed, /```text\n([^]*?)```/.exec(readme)?.[1])
    }), 60_000)

  it("the page lists every refusal, and none extra", () => {
    const listed = [...read("../../../docs/spend-cap-proxy.md").matchAll(/^\| `([a-z_]+)` \| \d{3} /gm)].map((match) => match[1]!)
    assert.deepStrictEqual(listed.toSorted(), [...refusalCodes].toSorted())
  })
})
