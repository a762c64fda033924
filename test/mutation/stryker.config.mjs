/**
 * Mutation testing of what decides about money, one scope at a time: `MUTATION_SCOPE` names it, `pnpm mutation` goes through all.
 * Stryker makes a copy of the workspace, so that nothing here is ever changed.
 */
import { fileURLToPath } from "node:url"
import { scopes } from "./scopes.mjs"

const name = process.env["MUTATION_SCOPE"] ?? ""
const scope = scopes[name] ?? { mutate: [] }

export default {
  mutate: scope.mutate,
  testRunner: "vitest",
  plugins: [fileURLToPath(import.meta.resolve("@stryker-mutator/vitest-runner"))],
  vitest: { configFile: "test/mutation/vitest.config.mjs", related: false },
  // Each mutant sees the tests that reach it. What runs once, at import, is reached by all of them and belongs to none.
  coverageAnalysis: "perTest",
  ignoreStatic: true,
  concurrency: 1,
  timeoutMS: 10_000,
  ignorePatterns: ["**/dist"],
  // There is none: TypeScript 7 has no API by which the tool could rewrite one, and Vitest needs none.
  tsconfigFile: "none.json",
  tempDirName: ".stryker",
  reporters: ["progress-append-only", "clear-text", "json"],
  clearTextReporter: { allowColor: false, allowEmojis: false, logTests: false, reportTests: false },
  jsonReporter: { fileName: `test/mutation/node_modules/.cache/${name}.json` },
  thresholds: { high: 90, low: 85, break: 85 }
}
