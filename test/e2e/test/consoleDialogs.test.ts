/**
 * The console in a real browser, where an act is not answered soon, and where more runs are known than a page of them. It needs
 * Chromium, and is run by `pnpm test:browser`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Database } from "@purser/postgres"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { browser, picture, startConsole } from "../src/Console.ts"
import { atDesk } from "../src/Desk.ts"

/** Sixty runs of which the oldest goes on. */
const runs = [
  `insert into purser.runs (run_id, source, state, begun_at, planned_at, planned, present)
    select 'r' || i, '/files/day-' || i || '.csv', 'planned', purser.now() - i * interval '1 day', purser.now() - i * interval '1 day', 0, 0 from generate_series(1, 60) i`,
  `insert into purser.run_registry (run_id, name, state, definition, params, options, actor, created_at)
    values ('r60', 'the long one', 'running', 'file', '{}', '{}', 'ada', purser.now() - interval '60 days')`
]

describe("purser console, in a browser", () => {
  it.live("a question stays while its act is not answered, names what it is about, and is heard of after it was left; every run is reached", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      const { url } = yield* startConsole(at, ["--actor", "ada"])
      yield* Effect.provide(
        Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.forEach(runs, (statement) => sql.unsafe(statement))),
        Database.layerUrl(Redacted.make(at.env["PURSER_DATABASE_URL"]!), { maxConnections: 1 })
      )
      const chromium = yield* browser
      const page = yield* Effect.promise(() => chromium.newPage({ viewport: { width: 1280, height: 860 } }))
      yield* Effect.addFinalizer((exit) => exit._tag === "Failure" ? Effect.promise(() => picture(page, "failed")) : Effect.void)
      yield* Effect.promise(async () => {
        let answer: (() => void) | undefined
        const held = new Promise<void>((resolve) => answer = resolve)
        await page.route("**/api/charging/pause", async (route) => {
          await held
          await route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ _tag: "Away", message: "the ledger is away" }) })
        })
        await page.goto(`${url}/#/runs`)
        const list = page.getByRole("list", { name: "Runs" })
        await list.getByText("the long one").waitFor()
        assert.deepStrictEqual([await list.getByRole("listitem").count(), await list.getByText("day-55.csv").count()], [51, 0])
        assert.include(await list.getByRole("listitem").first().textContent(), "the long one")
        await page.getByRole("article", { name: "Run day-1.csv" }).waitFor()
        await picture(page, "some-runs")
        await page.setViewportSize({ width: 360, height: 740 })
        await picture(page, "some-runs-360")
        await page.setViewportSize({ width: 1280, height: 860 })
        await page.getByRole("button", { name: "Older runs" }).click()
        await list.getByText("day-55.csv").waitFor()
        await page.getByRole("button", { name: "Older runs" }).waitFor({ state: "detached" })
        assert.strictEqual(await list.getByRole("listitem").count(), 60)

        await page.getByRole("button", { name: "Pause all charging" }).click()
        const dialog = page.getByRole("dialog", { name: "Pause all charging all charging of this database" })
        await dialog.getByLabel("Reason, for the record").fill("an incident")
        await dialog.getByRole("button", { name: "Pause all charging" }).click()
        await dialog.getByText("Sent off, and not answered yet").waitFor()
        await dialog.getByText("2 s").waitFor()
        await picture(page, "waiting")
        await page.setViewportSize({ width: 360, height: 740 })
        await picture(page, "waiting-360")
        await page.keyboard.press("Escape")
        assert.isTrue(await dialog.isVisible())
        // A browser lets nobody be held by a page for ever: what comes of it is told all the same.
        await page.evaluate("document.querySelector('dialog').close()")
        await dialog.waitFor({ state: "detached" })
        answer?.()
        await page.locator("[aria-live]").getByText("Pause all charging, all charging of this database: the ledger is away").waitFor({ state: "attached" })
      })
    })), 120_000)
})
