import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url))

describe("README", () => {
  it("shows the example, which runs", () => {
    const example = readFileSync(file("../examples/round-trip.ts"), "utf8")
    assert.include(readFileSync(file("../README.md"), "utf8"), `\`\`\`ts\n${example}\`\`\``)
    const output = execFileSync(process.execPath, [file("../examples/round-trip.ts")], { encoding: "utf8", timeout: 60_000 })
    assert.strictEqual(output, "Succeeded 94872cda2d5cf2871e4e83c8f2461bd4\n")
  }, 90_000)
})
