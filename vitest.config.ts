import { defineConfig } from "vitest/config"

const e2e = (names: ReadonlyArray<string>) => names.map((name) => `test/e2e/test/${name}.test.ts`)
// Every failure on every further gateway, every package manager on every Node: minutes of it, so that it has its own command, `pnpm test:long`.
const long = [
  ...e2e([
    "chargesGateway", "invoicesGateway", "gatewayCrash", "restoredLedger", "refundFailures", "connectWatch", "runner", "runnerLong",
    "runnerOutage", "runnerStop", "rates", "feed", "forwarder", "hostDunning", "dunning", "connect", "commandRun", "stopAnywhere", "refunds", "refundsElsewhere", "hostCalls", "runQuery",
    "spendCapProxy"
  ]),
  "apps/spend-cap-proxy/test/conformance.test.ts",
  "packages/postgres/test/embedded.test.ts",
  "packages/transport-zeromq/test/curveBetween.test.ts",
  "packages/transport-zeromq/test/kill.test.ts",
  "test/packaging/test/matrix.test.ts",
  // Its npm asks the registry, which a machine that has set itself up need not reach any more.
  "test/packaging/test/packages.test.ts"
]
// These run in both, and whole in the long run alone.
const both = [
  ...e2e(["reconcile", "reconcileRevisions", "declineProtocol", "failureTable", "webhooks", "webhookHttp", "refundPause", "crash", "feed"]),
  "packages/transport-zeromq/test/curve.test.ts",
  "test/docs/test/shell.test.ts",
  "test/simulation/test/explore.test.ts"
]
const onlyLong = process.env["PURSER_TEST_LONG"] !== undefined
// What needs a browser, which not every machine has: `pnpm test:browser`.
const browser = ["test/e2e/test/consoleBrowser.test.ts", "test/e2e/test/consoleDialogs.test.ts"]
const onlyBrowser = process.env["PURSER_TEST_BROWSER"] !== undefined

const everything = ["packages/*/test/**/*.test.ts", "apps/*/test/**/*.test.ts", "test/**/*.test.ts", "examples/**/*.test.ts"]
// Tests of what is in memory, or in other processes, leave nothing behind in their own, so that many files share one: most of a small file's time is the
// reading of its modules. The others have a process per file, since PGlite and ZeroMQ hold native state.
const shared = [
  "packages/core", "packages/engine", "packages/stripe", "packages/stripe-sim", "packages/testkit", "apps/cli", "test/docs", "test/e2e", "test/engine", "test/fuzz"
].map((folder) => `${folder}/test/**/*.test.ts`)
const exclude = ["**/node_modules/**", ...(onlyLong ? [] : long), ...(onlyBrowser ? [] : browser)]
const common = { pool: "forks", testTimeout: 30_000, hookTimeout: 60_000 } as const

export default defineConfig({
  test: {
    exclude,
    globalSetup: ["test/support/postgres.global.ts", "test/support/command.global.ts"],
    maxWorkers: 2,
    projects: onlyBrowser || onlyLong
      ? [{ test: { ...common, name: "alone", include: onlyBrowser ? browser : [...long, ...both], exclude } }]
      : [
        { test: { ...common, name: "alone", include: everything, exclude: [...exclude, ...shared] } },
        // After the others: a process is handed on only while the next file is of the same kind.
        { test: { ...common, name: "shared", include: shared, exclude, isolate: false, sequence: { groupOrder: 1 } } }
      ]
  }
})
