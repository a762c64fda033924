/** Who has an old Node is told so, and not what that Node stumbles over. */
import { assert, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { join } from "node:path"

const command = join(import.meta.dirname, "../bin/purser.mjs")
const on = (version: string) =>
  spawnSync(process.execPath, [
    "--import",
    `data:text/javascript,Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } })`,
    command,
    "--version"
  ], { encoding: "utf8" })

it("the command names the Node that it needs", () => {
  for (const version of ["18.0.0", "20.20.2", "22.18.0"]) {
    const { status, stderr, stdout } = on(version)
    assert.deepStrictEqual([status, stdout, stderr], [1, "", `purser needs Node 22.19 or newer, and this is Node ${version}\n`])
  }
})

it("and takes each that is as new", () => {
  for (const version of ["22.19.0", "24.0.0"]) assert.notInclude(on(version).stderr, "purser needs Node")
})
