// `pnpm mutation [SCOPE …] [options of Stryker]`: the scopes one after the other, all of them unless some are named. Ends with 1 when the score of any is below 85 %.
// `pnpm mutation sql [NAME …]`: the guards in SQL, see `sql.mjs`.
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { scopes } from "./scopes.mjs"

const root = fileURLToPath(new URL("../../", import.meta.url))
const stryker = fileURLToPath(new URL("node_modules/.bin/stryker", import.meta.url))
const given = process.argv.slice(2)
const sql = (names) => spawnSync(process.execPath, ["--disable-warning=ExperimentalWarning", fileURLToPath(new URL("sql.mjs", import.meta.url)), ...names], { cwd: root, stdio: "inherit" }).status

if (given[0] === "sql") process.exit(sql(given.slice(1)) ?? 1)
const named = given.filter((argument) => argument in scopes)
const options = given.filter((argument) => !(argument in scopes))

for (const scope of named.length > 0 ? named : Object.keys(scopes)) {
  const { status } = spawnSync(stryker, ["run", "test/mutation/stryker.config.mjs", ...options], { cwd: root, stdio: "inherit", env: { ...process.env, MUTATION_SCOPE: scope } })
  if (status !== 0) process.exitCode = 1
}
if (given.length === 0 && sql([]) !== 0) process.exitCode = 1
