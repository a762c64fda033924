// `pnpm mutation [SCOPE …] [options of Stryker]`: the scopes one after the other, all of them unless some are named. Ends with 1 when the score of any is below 85 %.
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { scopes } from "./scopes.mjs"

const root = fileURLToPath(new URL("../../", import.meta.url))
const stryker = fileURLToPath(new URL("node_modules/.bin/stryker", import.meta.url))
const given = process.argv.slice(2)
const named = given.filter((argument) => argument in scopes)
const options = given.filter((argument) => !(argument in scopes))

for (const scope of named.length > 0 ? named : Object.keys(scopes)) {
  const { status } = spawnSync(stryker, ["run", "test/mutation/stryker.config.mjs", ...options], { cwd: root, stdio: "inherit", env: { ...process.env, MUTATION_SCOPE: scope } })
  if (status !== 0) process.exitCode = 1
}
