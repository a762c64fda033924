/** The two looks at what is not ours to write: known holes in dependencies, and secrets in what a run has written. */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"

/** Runs a script over a file of this content, which is its last argument. */
const run = (script: string, args: ReadonlyArray<string>, content: string) => {
  const folder = mkdtempSync(join(tmpdir(), "purser-scripts-"))
  const file = join(folder, "content")
  writeFileSync(file, content)
  const path = fileURLToPath(new URL(`../../../scripts/${script}`, import.meta.url))
  const { status, stderr, stdout } = spawnSync(process.execPath, ["--disable-warning=ExperimentalWarning", path, ...args, file], { encoding: "utf8" })
  rmSync(folder, { recursive: true })
  return { status, text: stdout + stderr }
}

describe("planted secrets", () => {
  it("are found wherever they stand, and are not repeated", () => {
    const key = ["rk_test_51", "HushHushVerySecret"].join("")
    const found = run("findSecrets.ts", [], JSON.stringify({ message: `\u001b[31m x${key}y` }))
    assert.strictEqual(found.status, 1)
    assert.include(found.text, "holds Stripe's key of the gateway's tests")
    assert.notInclude(found.text, key)
    assert.strictEqual(run("findSecrets.ts", [], "rk_test_51…, whsec_").status, 0)
  })
})

describe("the audit of dependencies", () => {
  const report = (severity: string, count = 1) =>
    JSON.stringify({
      advisories: severity === "" ? {} : { 1: { module_name: "left-pad", severity, title: "pads wrongly", url: "https://example.test/1" } },
      metadata: { vulnerabilities: { info: 0, low: 0, moderate: 0, high: count, critical: 0 } }
    })
  const audit = (content: string, level = "moderate") => run("auditDependencies.ts", [level], content)

  it("fails on a finding of its level or worse, and names it", () => {
    const { status, text } = audit(report("high"))
    assert.deepStrictEqual([status, text.includes("high: left-pad: pads wrongly")], [1, true])
    assert.strictEqual(audit(report("high"), "critical").status, 0)
    // What the registry has invented since then is no reason to pass.
    assert.strictEqual(audit(report("catastrophic"), "critical").status, 1)
  })

  it("passes only on a report that lists nothing and counts nothing", () => {
    assert.strictEqual(audit(report("", 0)).status, 0)
    assert.strictEqual(audit(report("", 1)).status, 2)
  })

  /** The step of `npm test`, on a machine whose pnpm gives this answer. */
  const step = (answer: string) => {
    const folder = mkdtempSync(join(tmpdir(), "purser-pnpm-"))
    writeFileSync(join(folder, "answer"), answer)
    writeFileSync(join(folder, "pnpm"), `#!/bin/sh\ncat ${JSON.stringify(join(folder, "answer"))}\n`, { mode: 0o755 })
    const path = fileURLToPath(new URL("../../../scripts/check.ts", import.meta.url))
    const { status, stderr, stdout } = spawnSync(process.execPath, ["--disable-warning=ExperimentalWarning", path, "audit"], {
      encoding: "utf8", env: { ...process.env, PATH: `${folder}${delimiter}${process.env["PATH"]}` }
    })
    rmSync(folder, { recursive: true })
    return { status, text: stdout + stderr }
  }

  it("is a step of every run, which a finding fails", () => {
    const { status, text } = step(report("high"))
    assert.deepStrictEqual([status, text.includes("high: left-pad: pads wrongly"), text.endsWith("0 passed, 1 failed\n")], [1, true, true])
    assert.isTrue(step(report("", 0)).text.endsWith("1 passed, 0 failed\n"))
  })

  it("says in every run when the registry could not be asked, and fails it not", () => {
    const { status, text } = step("Error: ERR_PNPM_AUDIT_BAD_RESPONSE")
    assert.deepStrictEqual([status, text.includes("NOT MADE audit"), text.endsWith("1 not made: nothing is known about that\n0 passed, 0 failed\n")], [0, true, true])
  })

  it("calls no answer by its name", () => {
    for (const answer of ["", "<html>405</html>", "null", "{}", "{\"error\":{\"code\":\"ERR_PNPM_AUDIT_BAD_RESPONSE\",\"message\":\"405\"}}"]) {
      const { status, text } = audit(answer)
      assert.deepStrictEqual([status, text.includes("nothing is known about holes in the dependencies")], [2, true], answer)
    }
  })
})
