/** The page without a browser: how large it is, that it begins to be drawn, and how it writes money, shares and times. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { createElement } from "react"
import { renderToString } from "react-dom/server"
import type { RunSlice, Session, Story } from "../src/api/Shapes.ts"
import { WebFiles } from "../src/WebFiles.ts"
import { routeOf } from "../web/route.ts"
import { amount, chargeName, count, percent, rate, short, span } from "../web/format.ts"
import { ConflictTable } from "../web/parts/ConflictTable.tsx"
import { Act, Dialog, SessionContext } from "../web/parts/Act.tsx"
import { CapGauge, StackBar, StackChart } from "../web/parts/charts.tsx"

layer(WebFiles.layer, { timeout: 60_000 })("the page's files", (it) => {
  it.effect("are below 250 kB as they are sent, and nothing of a server is among them", () =>
    Effect.gen(function*() {
      const { sizes } = yield* WebFiles
      const whole = sizes.reduce((sum, [, bytes]) => sum + bytes, 0)
      assert.isAbove(whole, 50_000)
      assert.isBelow(whole, 250_000)
      assert.includeMembers(sizes.map(([name]) => name), ["index.html", "icon.svg"])
    }))
})

describe("how the page writes", () => {
  it("amounts in the form of their currency", () => {
    assert.deepStrictEqual(
      [amount(123456, "usd"), amount(5, "usd"), amount(1234567, "jpy"), amount(1234560, "kwd"), amount(12345600n, "isk"), amount(-250, "eur"), amount(0, "bhd"), amount(7, "zzz")],
      ["1,234.56", "0.05", "1,234,567", "1,234.560", "123,456.00", "−2.50", "0.000", "7 minor"]
    )
    assert.strictEqual(amount(9_007_199_254_740_993n, "usd"), "90,071,992,547,409.93")
  })
  it("shares that are all only when they are", () => {
    assert.deepStrictEqual([percent(0, 0), percent(0, 10), percent(1, 1_000_000), percent(999_999, 1_000_000), percent(10, 10), percent(1, 3)], ["–", "0 %", "< 1 %", "99 %", "100 %", "33 %"])
    // As a terminal says them: cut, by integers.
    assert.deepStrictEqual([percent(29, 100), percent(2n, 3n), percent(11n, 10n)], ["29 %", "66 %", "110 %"])
  })
  it("times, speeds, numbers and ids", () => {
    assert.deepStrictEqual([span(900), span(61_000), span(7_260_000), span(5 * 86_400_000)], ["1 s", "1 min 1 s", "2 h 1 min", "5 days"])
    assert.deepStrictEqual([rate(0), rate(1.26), rate(1234.4), count(1_000_000n)], ["0 /s", "1.3 /s", "1,234 /s", "1,000,000"])
    assert.deepStrictEqual([short("pi_short"), short("0123456789abcdefghij")], ["pi_short", "0123456789…ghij"])
  })
})

describe("where the page is", () => {
  it("is read from its address, whatever was typed there", () => {
    const place = (hash: string) => (({ id, page }) => [page, id])(routeOf(hash))
    assert.deepStrictEqual([place(""), place("#/charges/a%2Fb"), place("#/caps?x=%")], [["runs", undefined], ["charges", "a/b"], ["caps", undefined]])
    assert.deepStrictEqual([place("#/charges/%"), place("#/runs/a%zz")], [["charges", "%"], ["runs", "a%zz"]])
  })
})

const slices: ReadonlyArray<RunSlice> = [
  { atMs: 0, waiting: 10, inWork: 0, past: {} },
  { atMs: 1000, waiting: 2, inWork: 1, past: { succeeded: 5, declined: 1, requires_action: 1 } }
]

describe("the page's parts", () => {
  it("say in words what their colours say", () => {
    const chart = renderToString(createElement(StackChart, { slices }))
    assert.include(chart, "now succeeded 5, declined 1, requires action 1, in work 1, waiting 2")
    assert.include(renderToString(createElement(StackBar, { label: "Rows", shares: [{ name: "paid", tone: "good", n: 3 }, { name: "waiting", tone: "idle", n: 0 }] })), "Rows: paid 3")
    const cap = { namespace: "n", billingPeriod: "2026-07", currency: "jpy", expectedMinor: 1000n, headroomPercent: 110, capMinor: 1100n, reservedMinor: 550n, reservations: 3, closed: false }
    assert.include(renderToString(createElement(CapGauge, { cap })), "2026-07 JPY: 50 % of the cap used")
  })

  it("name what an act is done to, on the question and on each of many buttons", () => {
    const props = { name: "Close", of: "2026-07 USD, n", explain: "", act: () => Effect.succeed({ text: "" }) }
    assert.match(renderToString(createElement(Dialog, { ...props, close: () => undefined })), /<h2[^>]*>Close.*2026-07 USD, n<\/span><\/h2>/)
    const session: Session = { actor: "ada", role: "operator", csrf: "x", canSignOut: false, charges: true, vaults: false, store: "s", version: "1" }
    assert.include(renderToString(createElement(SessionContext.Provider, { value: session }, createElement(Act, { ...props, quiet: true }))), "aria-label=\"Close: 2026-07 USD, n\"")
    assert.strictEqual(chargeName({ customerId: "c1", billingPeriod: "2026-07", item: "seats" }), "c1, 2026-07 · seats")
  })

  it("hold a stranger's text as text, and give a viewer nothing to press", () => {
    const session: Session = { actor: "ada", role: "operator", csrf: "x", canSignOut: false, charges: true, vaults: false, store: "s", version: "1" }
    const conflict: Story["conflicts"][number] = {
      runId: "r", line: 2, source: "/f/<img src=x>.csv", seenAtMs: 1, amountMinor: 1100, currency: "usd", stripeCustomerId: "cus_1", paymentMethod: null,
      keptPaymentMethod: null, resolvedAtMs: null, times: 1, lastAtMs: 1, principal: null,
      charge: {
        chargeKey: "0".repeat(32), namespace: "n", customerId: "<script>alert(1)</script>", billingPeriod: "2026-07", item: null, revision: 0, amountMinor: 1000,
        receivedMinor: 1000, currency: "usd", stripeCustomerId: "cus_1", state: "succeeded", attempt: 1, paymentIntentId: "pi_1", quarantine: null, detail: null, updatedAtMs: 1
      }
    }
    const draw = (role: Session["role"]) =>
      renderToString(createElement(SessionContext.Provider, { value: { ...session, role } }, createElement(ConflictTable, { conflicts: [conflict], done: () => undefined })))
    const operator = draw("operator")
    assert.notInclude(operator, "<script>alert")
    assert.notInclude(operator, "<img")
    assert.include(operator, "&lt;script&gt;alert(1)&lt;/script&gt;")
    assert.include(operator, "11.00")
    assert.include(operator, "Keep the ledger")
    assert.notInclude(draw("viewer"), "<button")
  })
})
