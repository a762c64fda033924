/**
 * The console in a real browser: a run is watched, paused and resumed, a conflict is dealt with, and every page is read by axe
 * in both themes, wide and at 360 pixels. It needs Chromium, and is run by `pnpm test:browser`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Database } from "@purser/postgres"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Page } from "playwright-core"
import { browser, picture, startConsole } from "../src/Console.ts"
import { atDesk, csv, type Desk } from "../src/Desk.ts"
import { proxyTo } from "../src/Proxy.ts"

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")
const rows = 80

const row = (i: number, amount = "10.00") => {
  const method = i % 16 === 3 ? "pm_card_chargeDeclined" : i % 29 === 7 ? "pm_card_authenticationRequired" : `pm_${i}`
  return `c${i},2026-07,${amount},${i % 10 === 0 ? "JPY" : "USD"},cus_${i},${method},base`
}
const bills = (change?: { readonly at: number; readonly amount: string }) =>
  csv(...Array.from({ length: rows }, (_, i) => row(i, i % 10 === 0 ? "1500" : change?.at === i ? change.amount : "10.00")))

interface Violation {
  readonly id: string
  readonly nodes: ReadonlyArray<{ readonly html: string; readonly failureSummary?: string }>
}

/** What axe finds, by rule, with the first place of each. */
const axe = async (page: Page): Promise<ReadonlyArray<string>> => {
  await page.evaluate(axeSource)
  const rules = JSON.stringify(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"])
  const violations = await page.evaluate(`axe.run(document, { runOnly: ${rules} }).then(({ violations }) => violations)`) as ReadonlyArray<Violation>
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary ?? ""}`)
}

const pages = ["runs", "charges", "attention", "caps", "workers", "reconcile", "trail"]

/** Fills in the reason of the open dialog and sends it off. */
const act = async (page: Page, name: string, reason: string) => {
  const dialog = page.locator("dialog[open]")
  await dialog.getByLabel("Reason, for the record").fill(reason)
  await dialog.getByRole("button", { name, exact: true }).click()
  await dialog.waitFor({ state: "detached" })
}

/** Reads these places, by their hash, in both themes, wide and at 360 pixels. */
const reading = (page: Page, url: string, places: ReadonlyArray<string>, ready: string) =>
  Effect.promise(async () => {
    const found: Array<string> = []
    for (const theme of ["light", "dark"] as const) {
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: width === 360 ? 740 : 860 })
        for (const place of places) {
          const name = place.split("/")[0]!.replace("charges", place.includes("/") ? "story" : "charges")
          await page.goto(`${url}/#/${place}`)
          await page.evaluate(`document.documentElement.dataset.theme = "${theme}"`)
          await page.locator(ready).first().waitFor()
          await page.waitForTimeout(500)
          await picture(page, `${name}-${theme}-${width}`)
          const over = Number(await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
          if (over > 0) found.push(`${name} is ${over} pixels wider than ${width}`)
          // Whoever has to sign in first has no pages to go to.
          const tab = name === "sign-in" ? { x: 0, width } : await page.locator("nav a[aria-current]").boundingBox()
          if (tab === null || tab.x < 0 || tab.x + tab.width > width) found.push(`${name}: its tab is not to be seen at ${width}`)
          found.push(...(await axe(page)).map((text) => `${name}, ${theme}, ${width}: ${text}`))
        }
      }
    }
    return found
  })

/** A charge that is quarantined, one that its worker left, and a message that nobody could read. */
const leftovers = [
  "update purser.charges set quarantine = 'amount is 9.99 usd, not 10.00 usd' where customer_id = 'c1'",
  `update purser.charges set state = 'attached', settled_at = null, received_minor = null, lease_worker = 'worker-that-died', lease_until = purser.now() - interval '1 hour'
    where customer_id = 'c2'`,
  "insert into purser.lease_pages (turn_at, keys) select lease_until, array[charge_key] from purser.charges where customer_id = 'c2'",
  `insert into purser.run_conflicts (run_id, line, charge_key, amount_minor, currency, stripe_customer_id, payment_method, principal, seen_at, last_at, times)
    select '', 1, charge_key, 9900, 'usd', stripe_customer_id, payment_method, 'shop-7', purser.now() - interval '2 hours', purser.now(), 14 from purser.charges where customer_id = 'c9'`,
  `insert into purser.dead_letters (digest, first_at, last_at, transport, reason, detail, size_bytes, body)
    values (decode(repeat('ab', 32), 'hex'), purser.now(), purser.now(), 'req-rep', 'MalformedMessage', 'no JSON', 4, 'what'::bytea),
      (decode(repeat('cd', 32), 'hex'), purser.now(), purser.now(), 'pub-sub', 'MalformedMessage', 'no JSON either', 4, 'that'::bytea)`
]

const paid = (at: Desk) => Effect.map(at.sim.books, (books) => books.reduce((sum, { payments }) => sum + payments, 0))

/** Waits until Stripe was asked for so many confirmations, answered or not. */
const confirmed = (at: Desk, count: number): Effect.Effect<void> =>
  Effect.flatMap(at.sim.requests, (requests) =>
    requests.filter(({ path }) => path.endsWith("/confirm")).length >= count ? Effect.void : Effect.andThen(Effect.sleep(20), confirmed(at, count)))

describe("purser console, in a browser", () => {
  it.live("a page says of when its figures are where the console is frozen or the ledger away, and goes on by itself", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      const database = new URL(at.env["PURSER_DATABASE_URL"]!)
      const proxy = yield* proxyTo(Number(database.port))
      database.hostname = "127.0.0.1"
      database.port = String(proxy.port)
      at.write("few.csv", csv(row(1), row(2)))
      yield* at.purser(["run", "few.csv", "--json"])
      const { running, url } = yield* startConsole(at, ["--actor", "ada"], { PURSER_DATABASE_URL: database.href })
      const chromium = yield* browser
      const page = yield* Effect.promise(() => chromium.newPage({ viewport: { width: 1280, height: 860 } }))
      yield* Effect.addFinalizer((exit) => exit._tag === "Failure" ? Effect.promise(() => picture(page, "failed")) : Effect.void)
      const live = page.getByRole("status").getByText("live", { exact: true })
      yield* Effect.promise(async () => {
        await page.goto(`${url}/#/runs`)
        await live.waitFor()
      })
      yield* running.kill("SIGSTOP")
      yield* Effect.promise(async () => {
        await page.getByRole("complementary", { name: "The console does not answer" }).getByText("What is shown is of").waitFor()
        await page.getByRole("status").getByText("connection lost").waitFor()
        await picture(page, "frozen")
      })
      yield* running.kill("SIGCONT")
      yield* Effect.promise(() => live.waitFor())

      yield* proxy.cut
      yield* Effect.promise(async () => {
        await page.getByRole("complementary", { name: "The ledger does not answer" }).getByText("What is shown is of").waitFor()
        await page.getByRole("status").getByText("ledger away").waitFor()
        assert.strictEqual(await page.getByText("The console does not answer").count(), 0)
        // The search is on another page: the keyboard goes there, and nothing that is typed is lost.
        await page.keyboard.press("/")
        await page.keyboard.type("c1")
        assert.strictEqual(await page.evaluate("document.activeElement?.value"), "c1")
        await page.getByText("Nothing could be read, asked again by itself").waitFor()
        assert.strictEqual(await page.getByText("No charge fits").count(), 0)
        await picture(page, "ledger-away")
        assert.deepStrictEqual(await axe(page), [])
      })
      yield* proxy.mend
      yield* Effect.promise(async () => {
        await page.getByText("2 shown").waitFor()
        await live.waitFor()
        assert.strictEqual(await page.getByRole("alert").count(), 0)
      })
      for (const place of ["runs", "attention", "caps", "trail"]) {
        yield* Effect.promise(async () => {
          await page.goto(`${url}/#/${place}`)
          await page.locator("main h1").first().waitFor()
          await page.keyboard.press("/")
          await page.keyboard.type("c2")
          assert.strictEqual(await page.evaluate("document.activeElement?.value"), "c2", place)
        })
      }
    })), 120_000)

  it.live("a run is watched, paused and resumed; a conflict is dealt with; axe finds nothing", () =>
    atDesk(Effect.fnUntraced(function*(at) {
      // Four payments are held at Stripe in the middle of the run, until the pause has come.
      yield* at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", nth: 25, times: 4 }, action: { kind: "delay", at: "before", delayMs: 600_000 } })
      const { url } = yield* startConsole(at, ["--actor", "ada"], { PURSER_PAUSE_POLL: "50 millis" })
      const chromium = yield* browser
      const page = yield* Effect.promise(() => chromium.newPage({ viewport: { width: 1280, height: 860 } }))
      yield* Effect.addFinalizer((exit) => exit._tag === "Failure" ? Effect.promise(() => picture(page, "failed")) : Effect.void)
      const complaints: Array<string> = []
      page.on("console", (message) => {
        if (message.type() === "error") complaints.push(message.text())
      })
      page.on("pageerror", (error) => complaints.push(String(error)))
      yield* Effect.promise(async () => {
        await page.goto(url)
        await page.getByText("No run yet.").waitFor()
        await page.getByRole("status").getByText("live").waitFor()
        await picture(page, "first")
      })

      at.write("bills.csv", bills())
      const runner = yield* at.start(["runner", "--transport", "memory"], { PURSER_RUNNER_PORT: "0", PURSER_RUN_PAGE: "20", PURSER_RUN_CONTROL_POLL: "50 millis", PURSER_PAUSE_POLL: "50 millis" })
      const detached = yield* at.purser(["run", "bills.csv", "--detach", "--name", "july", "--concurrency", "4", "--json"])
      assert.strictEqual(detached.code, 0, detached.stderr)
      const detail = page.getByRole("article", { name: "Run july" })
      const settled = detail.locator(".figure", { hasText: "Settled" })
      yield* runner.meanwhile(Effect.promise(async () => {
        await detail.waitFor()
        // It moves by itself: nobody reloads the page.
        await settled.filter({ hasText: /[1-9]\d* of 80 rows/ }).waitFor()
        await picture(page, "running")
      }))
      // All four are held: none is left to be held later, when nobody lets it go.
      yield* runner.meanwhile(confirmed(at, 28))
      yield* runner.meanwhile(Effect.promise(async () => {
        await page.getByRole("button", { name: "Pause run" }).click()
        await act(page, "Pause run", "a drill")
        await detail.getByRole("button", { name: "Resume run" }).waitFor()
        // The button that was pressed is gone; the act that took its place is where the keyboard goes on.
        await page.waitForFunction(`document.activeElement?.textContent === "Resume run"`)
        await detail.getByText("a drill").first().waitFor()
      }))
      yield* at.sim.faults.release
      // What was under way ends; then nothing more is asked.
      const still: Effect.Effect<number> = Effect.gen(function*() {
        const before = yield* at.calls
        yield* Effect.sleep(600)
        const after = yield* at.calls
        return before === after ? yield* paid(at) : yield* still
      })
      const atRest = yield* still
      assert.isBelow(atRest, rows - 10)
      yield* Effect.promise(() => picture(page, "paused"))
      yield* Effect.promise(async () => {
        // The switch that stops everything works beside it, from every page.
        await page.getByRole("button", { name: "Pause all charging" }).click()
        await act(page, "Pause all charging", "an incident")
        const resting = page.getByRole("complementary", { name: "Charging is paused" })
        await resting.getByText("by ada").waitFor()
        await picture(page, "all-paused")
        await page.goto(`${url}/#/attention`)
        await resting.getByRole("button", { name: "Resume charging" }).click()
        await act(page, "Resume charging", "the incident is over")
        await resting.waitFor({ state: "detached" })
        await page.goto(`${url}/#/runs`)
        await detail.getByRole("button", { name: "Resume run" }).click()
        await act(page, "Resume run", "the drill is over")
      })
      yield* Effect.promise(async () => {
        await settled.getByText("80 of 80 rows").waitFor()
        await picture(page, "finished")
      })
      const books = yield* at.paid
      assert.isTrue(books.every(({ payments }) => payments === 1))
      assert.strictEqual(books.length, rows - 5 - 3)

      at.write("again.csv", bills({ at: 4, amount: "11.00" }))
      const again = yield* at.purser(["run", "again.csv", "--json"])
      assert.strictEqual(again.json?.["conflict"], 1, again.stderr)
      yield* Effect.promise(async () => {
        await page.goto(`${url}/#/attention`)
        const conflicts = page.getByRole("region", { name: "Conflicts", exact: true }).first()
        await conflicts.getByText("11.00").waitFor()
        await picture(page, "conflict")
        assert.deepStrictEqual(await axe(page), [])
        await conflicts.getByRole("button", { name: "Keep the ledger's" }).click()
        await act(page, "Keep the ledger's", "the file was made from an old list")
        await page.getByText("No file and no request says other terms than the ledger holds.").waitFor()
        await page.waitForFunction(`document.activeElement?.textContent?.startsWith("Conflicts")`)
        await page.locator("[aria-live]").getByText("the other terms were dropped").waitFor({ state: "attached" })
      })
      assert.isTrue((yield* at.paid).every(({ payments }) => payments === 1))
      const shown = yield* at.purser(["show", "c4", "2026-07", "--item", "base", "--json"])
      assert.include(shown.stdout, "were dropped by ada: the file was made from an old list")

      // The keyboard finds a charge and opens its story.
      yield* Effect.promise(async () => {
        await page.goto(`${url}/#/charges`)
        await page.getByText("80 shown").waitFor()
        await page.keyboard.press("/")
        await page.keyboard.type("c4")
        await page.getByLabel("whole id").check()
        await page.keyboard.press("Enter")
        await page.getByText("1 shown").waitFor()
        await page.getByRole("grid", { name: "Charges" }).focus()
        await page.keyboard.press("Enter")
        await page.getByRole("heading", { name: /^c4/ }).waitFor()
        await page.getByText("were dropped by ada").first().waitFor()
        // Who planned it, in which run, and by which ids Stripe's support finds the calls.
        await page.getByText("line 6 of bills.csv").waitFor()
        assert.strictEqual(await page.locator(".story code.id", { hasText: /^req_/ }).count(), 2)
        await picture(page, "story")
        assert.deepStrictEqual(await axe(page), [])
      })
      const story = new URL(page.url()).hash.slice(2)
      // A comparison from the page finds both sides equal; its dialog is read too.
      yield* Effect.promise(async () => {
        await page.goto(`${url}/#/reconcile`)
        await page.getByRole("button", { name: "Compare", exact: true }).click()
        const dialog = page.locator("dialog[open]")
        await dialog.getByLabel("Period").fill("2026-07")
        await picture(page, "dialog")
        assert.deepStrictEqual(await axe(page), [])
        await act(page, "Compare", "the month's end")
        await page.getByText("Both sides say the same.").waitFor()
      })
      // A slip of the hand does not cut a cap off; one that is closed is opened again.
      yield* Effect.promise(async () => {
        await page.goto(`${url}/#/caps`)
        const card = page.locator(".card", { hasText: "USD" })
        const figures = async (total: string) => {
          await card.getByRole("button", { name: "Set figures" }).click()
          await page.locator("dialog[open]").getByLabel("Expected total, USD").fill(total)
        }
        await figures("1")
        const dialog = page.locator("dialog[open]")
        await dialog.getByLabel("Reason, for the record").fill("a slip")
        await dialog.getByRole("button", { name: "Set figures" }).click()
        await dialog.getByText(/below the [\d,.]+ that are used/).waitFor()
        await picture(page, "cap-doubt")
        assert.deepStrictEqual(await axe(page), [])
        await dialog.getByRole("button", { name: "Leave it" }).click()
        await figures("2000")
        await act(page, "Set figures", "late rows are coming")
        await card.getByRole("button", { name: "Close" }).click()
        await act(page, "Close", "the month is over")
        await card.getByRole("button", { name: "Reopen" }).click()
        await act(page, "Reopen", "late rows")
        await card.getByRole("button", { name: "Close" }).waitFor()
        const history = page.getByRole("group", { name: "History of the caps" })
        for (const text of ["reopened", "closed", "raised"]) await history.getByText(text, { exact: true }).first().waitFor()
        await history.getByText(/^run \S+$/).first().waitFor()
      })
      // A run that a command has in hand is held and goes on from the page too.
      at.write("late.csv", csv(...Array.from({ length: 12 }, (_, i) => `late${i},2026-07,10.00,USD,cus_l${i},pm_l${i},base`)))
      yield* at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", times: 2 }, action: { kind: "delay", at: "before", delayMs: 600_000 } })
      const before = (yield* at.sim.requests).filter(({ path }) => path.endsWith("/confirm")).length
      const command = yield* at.start(["run", "late.csv", "--json", "--concurrency", "2"], { PURSER_RUN_PAGE: "4", PURSER_RUN_CONTROL_POLL: "50 millis" })
      const late = page.getByRole("article", { name: "Run late.csv" })
      yield* command.meanwhile(confirmed(at, before + 2))
      yield* command.meanwhile(Effect.promise(async () => {
        await page.goto(`${url}/#/runs`)
        await late.getByRole("button", { name: "Pause run" }).click()
        await act(page, "Pause run", "a look at the file")
        await late.getByRole("button", { name: "Resume run" }).waitFor()
        await late.locator(".figure", { hasText: "Time left" }).getByText("held").waitFor()
      }))
      yield* command.says("held: a look at the file")
      yield* at.sim.faults.release
      yield* command.meanwhile(Effect.promise(async () => {
        await late.getByRole("button", { name: "Resume run" }).click()
        await act(page, "Resume run", "the file is right")
      }))
      const done = yield* command.ended
      assert.deepStrictEqual([done.code, done.json?.["succeeded"]], [0, 12], done.stderr)
      assert.isTrue((yield* at.paid).every(({ payments }) => payments === 1))
      // One of each that can wait, so that every list is read with something in it.
      yield* runner.kill("SIGTERM")
      yield* runner.ended
      // What is handed over now has nobody who would take it, and nothing that was not charged before.
      yield* at.purser(["run", "bills.csv", "--detach", "--name", "nobody", "--json"])
      yield* Effect.promise(async () => {
        await page.goto(`${url}/#/runs/nobody`)
        const nobody = page.getByRole("article", { name: "Run nobody" })
        await nobody.getByText("No runner is heard of: it waits until one is started").waitFor()
        await nobody.locator(".figure", { hasText: "nothing new" }).getByText("all 80 rows were settled before").waitFor()
        await picture(page, "nobody")
        assert.deepStrictEqual(await axe(page), [])
      })
      at.write("third.csv", bills({ at: 5, amount: "12.00" }))
      yield* at.purser(["run", "third.csv", "--json"])
      at.write("fourth.csv", bills({ at: 6, amount: "13.00" }))
      yield* at.purser(["run", "fourth.csv", "--json"])
      yield* Effect.provide(
        Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.forEach(leftovers, (statement) => sql.unsafe(statement))),
        Database.layerUrl(Redacted.make(at.env["PURSER_DATABASE_URL"]!), { maxConnections: 1 })
      )
      yield* Effect.promise(async () => {
        await page.goto(`${url}/#/attention`)
        for (const text of ["amount is 9.99 usd, not 10.00 usd", "12.00", "13.00", "shop-7", "worker-that-died", "no JSON"]) await page.getByText(text).first().waitFor()
        await page.getByRole("button", { name: "Pick all 2", exact: true }).click()
        await page.getByRole("button", { name: "Throw 2 away" }).waitFor()
        await page.getByRole("button", { name: "Pick none" }).click()
        // Two of three end with one reason; the third was ended by somebody else meanwhile, and its row says so.
        await page.getByLabel("Pick the conflict of c5").check()
        await page.getByLabel("Pick the conflict of c6").check()
        await page.getByRole("button", { name: "Keep the ledger's terms for 2" }).click()
        await picture(page, "several")
        // The last of them takes the acts on several with it: reading goes on at the heading.
        const reason = page.locator("dialog[open]").getByLabel("Reason, for the record")
        await reason.fill("lists of last month")
        await reason.press("Control+Enter")
        await page.locator("[aria-live]").getByText("2 dropped").waitFor({ state: "attached" })
        await page.getByText("13.00").waitFor({ state: "detached" })
        await page.waitForFunction(`document.activeElement?.textContent?.startsWith("Conflicts")`)
      })
      assert.deepStrictEqual(yield* reading(page, url, [...pages, story], "main h1"), [])

      const locked = yield* startConsole(at, [], { PURSER_CONSOLE_TOKEN: "a-token-of-the-tests" })
      yield* Effect.promise(async () => {
        await page.goto(locked.url)
        await page.getByLabel("Token").fill("not-the-token-of-the-tests")
        await page.getByLabel("Your name, for the record").fill("grace")
        await page.getByRole("button", { name: "Sign in" }).click()
        await page.getByRole("alert").getByText("this token opens nothing").waitFor()
      })
      // Of being let in nowhere a browser complains by itself.
      assert.isTrue(complaints.every((text) => text.includes("401")), complaints.join("; "))
      complaints.length = 0
      assert.deepStrictEqual(yield* reading(page, locked.url, ["sign-in"], "main h1"), [])
      yield* Effect.promise(async () => {
        await page.getByLabel("Token").fill("a-token-of-the-tests")
        await page.getByLabel("Your name, for the record").fill("grace")
        await page.getByRole("button", { name: "Sign in" }).click()
        await page.getByText("grace").waitFor()
        await page.getByRole("button", { name: "Sign out" }).click()
        await page.getByLabel("Token").waitFor()
      })
      const first = yield* Effect.promise(async () => {
        const fresh = await chromium.newPage()
        await fresh.goto(url)
        await fresh.getByRole("article", { name: /^Run / }).waitFor()
        return Math.round(Number(await fresh.evaluate("performance.now()")))
      })
      yield* Effect.logWarning(`first view with a run after ${first} ms`)
      assert.isTrue(complaints.every((text) => text.includes("401")), complaints.join("; "))
    })), 400_000)
})
