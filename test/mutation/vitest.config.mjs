import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import { scopes } from "./scopes.mjs"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** The tests to which the mutants of a scope are shown. */
export default defineConfig({
  root,
  resolve: {
    // The workspace's links lead out of the copy in which mutants live.
    alias: [
      { find: /^@purser\/(core|engine|testkit)$/, replacement: `${root}packages/$1/src/index.ts` },
      { find: /^@purser\/(core|engine|testkit)\/(.+)$/, replacement: `${root}packages/$1/src/$2.ts` }
    ]
  },
  test: {
    include: scopes[process.env["MUTATION_SCOPE"] ?? ""]?.tests ?? [],
    // Mutants are switched on at run time: what was imported once serves them all.
    isolate: false,
    testTimeout: 30_000
  }
})
