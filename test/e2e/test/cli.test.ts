/** The machine contract of `purser run`: its last line, its exit statuses, its report, each held against the simulator's books. */
import { assert, describe, it } from "@effect/vitest"
import { StripeSim } from "@purser/stripe-sim"
import { Effect, type Scope } from "effect"
import { csv, type Desk, desk, tens } from "../src/Desk.ts"
import type { Ended } from "../src/Purser.ts"
import { stores } from "../src/Store.ts"

const pglite = stores.find(([name]) => name === "pglite")![1]

/** The line's members, in the order of the contract. */
const members = [
  "rows", "succeeded", "declined", "rejected", "processing", "requiresAction", "conflict", "unresolved", "alreadySettled",
  "expectedMinor", "paidMinor", "capMinor"
]

const live = (title: string, test: (desk: Desk) => Effect.Effect<void, unknown, Scope.Scope>, store?: typeof pglite) =>
  it.live(title, () => Effect.scoped(Effect.flatMap(desk(store), test)).pipe(Effect.provide(StripeSim.layer())), 120_000)

const ends = (ended: Ended, code: number, some: Record<string, unknown> = {}) => {
  assert.strictEqual(ended.code, code, ended.stderr)
  for (const [name, value] of Object.entries(some)) assert.deepStrictEqual(ended.json?.[name], value, `${name}\n${ended.stderr}`)
}

/** Every identity of the books was paid once. */
const paidOnce = Effect.fnUntraced(function*({ paid }: Desk, identities: number) {
  const books = yield* paid
  assert.strictEqual(books.length, identities)
  assert.isTrue(books.every(({ payments }) => payments === 1))
  return books
})

describe("purser run", () => {
  live("pays every row and says so in one last line; the same command again changes nothing", (at) =>
    Effect.gen(function*() {
      at.write("bills.csv", csv(
        "acme,2026-07,12.50,USD,cus_1,pm_1,base", "beta,2026-07,17.50,USD,cus_2,pm_2,base",
        "acme,2026-07,5.00,EUR,cus_1,pm_1,extra", "acme,2026-08,7.00,USD,cus_1,pm_1,base"
      ))
      const args = [
        "run", "bills.csv", "--json", "--report", "report.csv", "--headroom", "1.20",
        "--expected-total", "2026-07:usd=31.00", "--expected-total", "eur=5.00", "--expected-total", "2026-08:usd=7.00"
      ]
      const first = yield* at.purser(args)
      ends(first, 0)
      assert.strictEqual(first.stdout.trimEnd().split("\n").length, 1)
      assert.deepStrictEqual(Object.keys(first.json ?? {}), members)
      const account = {
        rows: 4, succeeded: 4, declined: 0, rejected: 0, processing: 0, requiresAction: 0, conflict: 0, unresolved: 0,
        expectedMinor: { usd: 3800, eur: 500 }, paidMinor: { usd: 3700, eur: 500 }, capMinor: { usd: 3720 + 840, eur: 600 }
      }
      assert.deepStrictEqual(first.json, { ...account, alreadySettled: 0 })
      const books = yield* paidOnce(at, 4)
      assert.strictEqual(books.reduce((sum, entry) => sum + entry.amountMinor, 0), 4200)
      assert.deepStrictEqual(at.report("report.csv").map((row) => row["already_settled"]), ["no", "no", "no", "no"])

      const calls = yield* at.calls
      const second = yield* at.purser(args)
      ends(second, 0)
      assert.deepStrictEqual(second.json, { ...account, alreadySettled: 4 })
      assert.strictEqual(yield* at.calls, calls)
      assert.deepStrictEqual(at.report("report.csv").map((row) => row["already_settled"]), ["yes", "yes", "yes", "yes"])
    }), pglite)

  live("ends with 2 when rows are not paid, accounts for each of them, and tries again only what it is told to", (at) =>
    Effect.gen(function*() {
      at.write("bills.csv", csv(
        "paid,2026-07,10.00,USD,cus_1,pm_1,", "asks,2026-07,11.00,USD,cus_2,pm_card_authenticationRequired,",
        "later,2026-07,12.00,USD,cus_3,pm_sim_processing,", "gone,2026-07,13.00,USD,cus_DELETED,pm_4,",
        "poor,2026-07,14.00,USD,cus_poor,,", "broken,2026-07,1.005,USD,cus_6,pm_6,"
      ))
      const setCard = (card: string) =>
        Effect.promise(() => fetch(`${at.sim.url}/v1/customers/cus_poor`, {
          method: "POST",
          headers: { authorization: "Bearer sk_test_x", "content-type": "application/x-www-form-urlencoded" },
          body: `invoice_settings[default_payment_method]=${card}`
        })).pipe(Effect.tap((answer) => Effect.sync(() => assert.strictEqual(answer.status, 200))))
      yield* setCard("pm_card_chargeDeclinedInsufficientFunds")
      const args = ["run", "bills.csv", "--json", "--skip-invalid", "--report", "report.csv"]
      const soon = { PURSER_PROCESSING_POLL: "1 millis" }
      const first = yield* at.purser(args, soon)
      const states = { succeeded: 1, declined: 1, rejected: 2, processing: 1, requiresAction: 1, conflict: 0, unresolved: 0 }
      ends(first, 2, { rows: 6, ...states, alreadySettled: 0, paidMinor: { usd: 1000 }, expectedMinor: { usd: 6000 } })
      assert.include(first.stderr, "bills.csv: line 7, column amount (3): \"1.005\"")
      const lines = at.report("report.csv")
      assert.deepStrictEqual(lines.map((row) => [row["line"], row["customer_id"], row["amount"], row["state"], row["received"]]), [
        ["2", "paid", "10.00", "succeeded", "10.00"], ["3", "asks", "11.00", "requires_action", ""], ["4", "later", "12.00", "processing", ""],
        ["5", "gone", "13.00", "rejected", ""], ["6", "poor", "14.00", "declined", ""], ["7", "", "", "rejected", ""]
      ])
      assert.match(lines[0]!["payment_intent"]!, /^pi_/)
      assert.include(lines[3]!["detail"]!, "No such customer")
      assert.include(lines[4]!["detail"]!, "insufficient funds")
      assert.include(lines[5]!["detail"]!, "line 7")

      yield* setCard("pm_card_visa")
      const plain = yield* at.purser(args, soon)
      ends(plain, 2, { ...states, alreadySettled: 5 })
      const retried = yield* at.purser([...args, "--retry", "declined"], soon)
      ends(retried, 2, { ...states, succeeded: 2, declined: 0, alreadySettled: 4, paidMinor: { usd: 2400 } })
      assert.deepStrictEqual(at.report("report.csv").map((row) => row["already_settled"]), ["yes", "yes", "yes", "yes", "no", "no"])
      const attempts = (yield* at.sim.requests).filter(({ idempotencyKey, path }) =>
        path.endsWith("/confirm") && path.includes(lines[4]!["payment_intent"]!) && idempotencyKey !== null)
      assert.deepStrictEqual(attempts.map(({ idempotencyKey }) => idempotencyKey!.split(":").at(-1)), ["1", "2"])

      assert.isTrue(yield* at.sim.settle(lines[2]!["payment_intent"]!, "succeeded"))
      const swept = yield* at.purser(["sweep", "--json"])
      ends(swept, 0)
      const status = yield* at.purser(["status", "2026-07", "--json"])
      const charges = status.json?.["charges"] as ReadonlyArray<Record<string, unknown>>
      assert.deepStrictEqual(charges.map(({ charges, receivedMinor, state }) => [state, charges, receivedMinor]).toSorted(), [
        ["rejected", 1, 0], ["requires_action", 1, 0], ["succeeded", 3, 3600]
      ])
      yield* paidOnce(at, 3)
    }))

  live("a dry run sends nothing, plans nothing and needs no key", (at) =>
    Effect.gen(function*() {
      at.write("bills.csv", csv(...tens(3)))
      const dry = yield* at.purser(["run", "bills.csv", "--dry-run", "--json"], { PURSER_STRIPE_KEY: "" })
      ends(dry, 0)
      assert.deepStrictEqual(dry.json, { dryRun: true, rows: 3, refused: 0 })
      assert.strictEqual(yield* at.calls, 0)
      assert.deepStrictEqual((yield* at.purser(["status", "--json"])).json, { pauses: [], charges: [], refunds: [], refundedElsewhere: [], caps: [] })
    }))

  live("a total over the cap is refused whole; --over-cap fits takes what fits, a raised cap and --retry rejected the rest", (at) =>
    Effect.gen(function*() {
      at.write("bills.csv", csv(...tens(5)))
      const args = ["run", "bills.csv", "--json", "--report", "report.csv"]
      const refused = yield* at.purser([...args, "--expected-total", "20.00"])
      ends(refused, 1)
      assert.include(refused.stderr, "the rows of 2026-07 need 50.00 usd, the cap is 22.00")
      assert.strictEqual(yield* at.calls, 0)
      assert.deepStrictEqual((yield* at.purser(["status", "--json"])).json, { pauses: [], charges: [], refunds: [], refundedElsewhere: [], caps: [] })

      const fits = yield* at.purser([...args, "--expected-total", "20.00", "--over-cap", "fits"])
      ends(fits, 2, { rows: 5, succeeded: 2, rejected: 3, paidMinor: { usd: 2000 }, capMinor: { usd: 2200 } })
      yield* paidOnce(at, 2)
      assert.strictEqual(at.report("report.csv").filter(({ detail, state }) => state === "rejected" && detail!.includes("do not fit under the cap")).length, 3)

      const raised = yield* at.purser(["cap", "raise", "2026-07", "--currency", "usd", "--expected-total", "50.00", "--reason", "five customers"])
      ends(raised, 0)
      const rest = yield* at.purser([...args, "--retry", "rejected"])
      ends(rest, 0, { rows: 5, succeeded: 5, rejected: 0, alreadySettled: 2, paidMinor: { usd: 5000 }, capMinor: { usd: 5500 } })
      yield* paidOnce(at, 5)
    }))

  live("a declined charge for which there is no room any more stays declined at its attempt, whoever asks for the next one, and is named", (at) =>
    Effect.gen(function*() {
      at.write("bills.csv", csv(
        "poor,2026-07,10.00,USD,cus_1,pm_card_visa_chargeDeclinedInsufficientFunds,base", "late,2026-07,5.00,USD,cus_2,pm_card_visa_chargeDeclinedInsufficientFunds,base",
        "paid,2026-07,10.00,USD,cus_3,pm_1,base"
      ))
      at.write("others.csv", csv("other,2026-07,9.00,USD,cus_4,pm_2,base"))
      ends(yield* at.purser(["run", "bills.csv", "--expected-total", "25.00", "--headroom", "1.00", "--json"]), 2, { succeeded: 1, declined: 2 })
      ends(yield* at.purser(["run", "others.csv", "--json"]), 0)

      const calls = yield* at.calls
      const retried = yield* at.purser(["run", "bills.csv", "--retry", "declined", "--json", "--report", "report.csv"])
      ends(retried, 2, { rows: 3, succeeded: 1, declined: 2, rejected: 0, unresolved: 0, alreadySettled: 2 })
      assert.include(retried.stderr, "1 declined charges are tried again")
      assert.include(retried.stderr, "line 2: poor 2026-07 base stays declined at attempt 1: 10.00 usd do not fit under the cap")
      assert.notInclude(retried.stderr, "line 3:")
      assert.include(retried.stderr, "2 of 3 rows are not paid. For 1 of them there was no room under the cap: nobody was asked again, and they stay as they were.")
      assert.deepStrictEqual(at.report("report.csv").map(({ already_settled, customer_id, state }) => [customer_id, state, already_settled]), [
        ["poor", "declined", "yes"], ["late", "declined", "no"], ["paid", "succeeded", "yes"]
      ])
      assert.isAbove(yield* at.calls, calls)
      const standing = (name: string) => Effect.map(at.purser(["show", name, "2026-07", "--item", "base", "--json"]), ({ json }) => [json?.["state"], json?.["attempt"]])
      assert.deepStrictEqual([yield* standing("poor"), yield* standing("late")], [["declined", 1], ["declined", 2]])

      ends(yield* at.purser(["cap", "close", "2026-07", "--currency", "usd"]), 0)
      const closed = yield* at.purser(["run", "bills.csv", "--retry", "declined", "--json"])
      ends(closed, 2, { succeeded: 1, declined: 2, rejected: 0, alreadySettled: 3 })
      assert.deepStrictEqual([yield* standing("poor"), yield* standing("late")], [["declined", 1], ["declined", 2]])
      yield* paidOnce(at, 2)
    }))

  live("reads another dialect in memory, and NDJSON from standard input with three workers", (at) =>
    Effect.gen(function*() {
      at.write("rechnungen.csv", [
        "kunde;billing_period;betrag;stripe_customer_id;payment_method",
        "müller;2026-07;1234,50;cus_1;pm_1", "\"weiß; söhne\";2026-07;0,99;cus_2;pm_2"
      ].join("\r\n"))
      const dialect = yield* at.purser([
        "run", "rechnungen.csv", "--json", "--delimiter", ";", "--decimal", ",", "--map", "kunde=customer_id", "--map", "betrag=amount",
        "--currency", "eur", "--transport", "memory", "--report", "report.csv"
      ])
      ends(dialect, 0, { rows: 2, paidMinor: { eur: 123_549 } })
      assert.deepStrictEqual((yield* paidOnce(at, 2)).map(({ customer }) => customer).toSorted(), ["müller", "weiß; söhne"])
      assert.deepStrictEqual(at.report("report.csv").map((row) => row["customer_id"]), ["müller", "weiß; söhne"])

      const lines = Array.from({ length: 9 }, (_, i) =>
        JSON.stringify({ customer_id: `n${i}`, billing_period: "2026-07", amount_minor: 1000 + i, currency: "usd", stripe_customer_id: `cus_n${i}` }))
      const piped = yield* at.purser(["run", "-", "--format", "ndjson", "--workers", "3", "--json"], {}, lines.join("\n"))
      ends(piped, 0, { rows: 9, succeeded: 9, paidMinor: { usd: 9036 } })
      yield* paidOnce(at, 11)
    }))
})
