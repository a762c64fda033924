/** What users compile against is what the reports in `api/` say (`UPDATE_EXPORTS=1` writes them anew). */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import { apiReport, readDeclarations, reportViolations } from "./api.ts"
import { packageFolders, readPackage, root } from "./workspace.ts"

const published = packageFolders(["packages", "apps"]).map(readPackage).filter(({ manifest }) => manifest.private !== true && manifest.exports !== undefined)

describe("declarations", () => {
  beforeAll(() => {
    const { status, stderr, stdout } = spawnSync(join(root, "node_modules/.bin/tsc"), ["-b"], { cwd: root, encoding: "utf8", shell: process.platform === "win32" })
    expect(status, `${stdout}${stderr}`).toBe(0)
  }, 120_000)

  it.each(published)("of $manifest.name are those of its report", ({ folder, manifest }) => {
    const report = apiReport(readDeclarations(join(root, folder)))
    expect(report).toContain("// index.d.ts")
    expect(reportViolations(manifest.name.replace("@purser/", ""), report)).toEqual([])
  })
})
