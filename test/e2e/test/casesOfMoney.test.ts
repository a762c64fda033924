/** What happens to money between runs, in the field: changed amounts, lost answers, borders, kills and late charges. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Schedule } from "effect"
import { atDesk, caseFile, csv, type Desk, paidAtLeast } from "../src/Desk.ts"
import { freePort } from "../src/Proxy.ts"

const live = (title: string, test: Parameters<typeof atDesk>[0]) => it.live(title, () => atDesk(test), 120_000)
const row = (customer: string, amount: string, period = "2026-07", item = "base") => `${customer},${period},${amount},USD,cus_${customer},pm_${customer},${item}`

/** Customer, period, item and amount of everything that was paid; each once. */
const charged = ({ paid }: Desk) =>
  Effect.map(paid, (books) => {
    assert.isTrue(books.every(({ payments }) => payments === 1))
    return books.map((entry) => [entry.customer, entry.billingPeriod, entry.item, entry.amountMinor].join(" ")).toSorted()
  })

describe("cases: money", () => {
  live("E1: another amount for a paid charge is a conflict that names both, and never a call", (at) =>
    Effect.gen(function*() {
      at.write("run1.csv", caseFile("E1-run1.csv"))
      at.write("run2.csv", caseFile("E1-run2.csv"))
      // The cap follows from the file: it is the conflict that is told, not the room that a charge would lack which is not made.
      assert.strictEqual((yield* at.purser(["run", "run1.csv", "--json"])).code, 0)
      const calls = yield* at.calls
      const second = yield* at.purser(["run", "run2.csv", "--json", "--report", "report.csv"])
      assert.deepStrictEqual([second.code, second.json?.["conflict"], second.json?.["succeeded"]], [2, 1, 0], second.stderr)
      for (const text of [second.stderr, at.report("report.csv")[0]!["detail"]!]) {
        assert.include(text, "the ledger holds 19.00 usd")
        assert.include(text, "this row asks for 21.00 usd")
      }
      assert.strictEqual(yield* at.calls, calls)
      assert.deepStrictEqual(yield* charged(at), ["acme 2026-07 base 1900"])
    }))

  live("E1: another amount for a charge whose outcome is unknown is a conflict too", (at) =>
    Effect.gen(function*() {
      at.write("run1.csv", caseFile("E1-run1.csv"))
      at.write("run2.csv", caseFile("E1-run2.csv"))
      const env = { PURSER_RUN_PATIENCE: "300 millis", PURSER_SWEEP: "false", PURSER_GATEWAY_ATTEMPTS: "2" }
      // Stripe takes the money once, and every answer after that is lost.
      yield* at.sim.faults.add(
        { match: { path: "/v1/payment_intents/*/confirm", times: "always" }, action: { kind: "reset", at: "after" } },
        { match: { method: "GET", times: "always" }, action: { kind: "reset", at: "before" } }
      )
      const first = yield* at.purser(["run", "run1.csv", "--json"], env)
      assert.deepStrictEqual([first.code, first.json?.["unresolved"]], [2, 1], first.stderr)
      const calls = yield* at.calls
      const second = yield* at.purser(["run", "run2.csv", "--json"], env)
      assert.deepStrictEqual([second.code, second.json?.["conflict"]], [2, 1], second.stderr)
      assert.include(second.stderr, "the ledger holds 19.00 usd")
      assert.strictEqual(yield* at.calls, calls)
      yield* at.sim.faults.clear
      const third = yield* at.purser(["run", "run1.csv", "--json"])
      assert.deepStrictEqual([third.code, third.json?.["succeeded"]], [0, 1], third.stderr)
      assert.deepStrictEqual(yield* charged(at), ["acme 2026-07 base 1900"])
    }))

  live("E3: charged, but the answer never came, came as a 5xx, or came too late: one charge each", (at) =>
    Effect.gen(function*() {
      // The file's row, and one for each other way to lose an answer.
      at.write("e3.csv", Buffer.concat([caseFile("E3-timeout.csv"), Buffer.from(["error", "proxy", "late"].map((customer) => row(customer, "19.00")).join("\n"))]))
      const confirmOf = (customer: string) => ({ path: "/v1/payment_intents/*/confirm", customer: `cus_${customer}` })
      yield* at.sim.faults.add(
        { match: confirmOf("T001"), action: { kind: "reset", at: "after" } },
        { match: confirmOf("error"), action: { kind: "serverError", effect: "done", stored: true } },
        { match: confirmOf("proxy"), action: { kind: "badGateway", effect: "done" } },
        { match: confirmOf("late"), action: { kind: "delay", at: "after", delayMs: 600_000 } }
      )
      const ended = yield* at.purser(["run", "e3.csv", "--json"], { PURSER_STRIPE_TIMEOUT: "1 second" })
      assert.deepStrictEqual([ended.code, ended.json?.["succeeded"], ended.json?.["paidMinor"]], [0, 4, { usd: 7600 }], ended.stderr)
      assert.strictEqual((yield* charged(at)).length, 4)
    }))

  live("E7: a deleted customer fails its row alone; nobody is made anew, and its room is given back", (at) =>
    Effect.gen(function*() {
      at.write("e7.csv", caseFile("E7-deleted.csv"))
      const ended = yield* at.purser(["run", "e7.csv", "--json", "--report", "report.csv"])
      assert.deepStrictEqual([ended.code, ended.json?.["succeeded"], ended.json?.["rejected"]], [2, 2, 2], ended.stderr)
      assert.deepStrictEqual(at.report("report.csv").map(({ detail, state }) => [state, detail]), [
        ["succeeded", ""], ["rejected", "No such customer: 'cus_TDELETED'"], ["succeeded", ""], ["rejected", "No such customer: 'cus_TNONE'"]
      ])
      assert.isFalse((yield* at.sim.requests).some(({ method, path }) => method === "POST" && path.startsWith("/v1/customers")))
      const caps = JSON.parse((yield* at.purser(["cap", "show", "--json"])).stdout) as ReadonlyArray<Record<string, unknown>>
      assert.deepStrictEqual(caps.map(({ reservations, reservedMinor }) => [reservedMinor, reservations]), [[2000, 2]])
    }))

  live("F5: a charge counts in its own period; a full July leaves August alone", (at) =>
    Effect.gen(function*() {
      at.write("border.csv", caseFile("F5-border.csv"))
      at.write("late.csv", csv(row("gamma", "10.00")))
      at.write("august.csv", csv(row("gamma", "10.00", "2026-08")))
      const totals = ["--headroom", "1.00", "--expected-total", "2026-07:usd=10.00", "--expected-total", "2026-08:usd=20.00"]
      assert.strictEqual((yield* at.purser(["run", "border.csv", "--json", ...totals])).code, 0)
      const late = yield* at.purser(["run", "late.csv", "--json"])
      assert.strictEqual(late.code, 1)
      assert.include(late.stderr, "the rows of 2026-07 need 10.00 usd, the cap is 10.00, of which 10.00 are taken")
      assert.strictEqual((yield* at.purser(["run", "august.csv", "--json"])).code, 0)
      const caps = JSON.parse((yield* at.purser(["cap", "show", "--json"])).stdout) as ReadonlyArray<Record<string, unknown>>
      assert.deepStrictEqual(caps.map(({ billingPeriod, reservedMinor }) => [billingPeriod, reservedMinor]).toSorted(), [["2026-07", 1000], ["2026-08", 2000]])
      assert.deepStrictEqual(yield* charged(at), ["acme 2026-07 base 1000", "beta 2026-08 base 1000", "gamma 2026-08 base 1000"])
    }))

  live("G1: stopped after 3, killed after the payment of the fifth, resumed twice: ten payments, and totals that equal the file", (at) =>
    Effect.gen(function*() {
      at.write("ten.csv", caseFile("G1-ten.csv"))
      const args = ["run", "ten.csv", "--json", "--concurrency", "1"]
      yield* at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", nth: 4 }, action: { kind: "delay", at: "before", delayMs: 600_000 } })
      const stopped = yield* at.start(args, { PURSER_DRAIN_TIMEOUT: "100 millis" })
      yield* stopped.meanwhile(paidAtLeast(at.sim, 3))
      yield* stopped.kill("SIGTERM")
      assert.strictEqual((yield* stopped.ended).code, 130)
      assert.strictEqual((yield* at.paid).length, 3)
      yield* at.sim.faults.clear
      const killed = yield* at.purser(args, { PURSER_FAULT: "after-confirm:2" })
      assert.strictEqual(killed.signal, "SIGKILL", killed.stderr)
      for (const settledBefore of [undefined, 10]) {
        const resumed = yield* at.purser(args)
        assert.deepStrictEqual([resumed.code, resumed.json?.["rows"], resumed.json?.["succeeded"], resumed.json?.["paidMinor"]], [0, 10, 10, { usd: 15_500 }])
        if (settledBefore !== undefined) assert.strictEqual(resumed.json?.["alreadySettled"], settledBefore)
      }
      assert.strictEqual((yield* charged(at)).length, 10)
    }))

  live("G3: a row that nobody charged is named, and only that one is charged by the next run", (at) =>
    Effect.gen(function*() {
      at.write("ten.csv", caseFile("G3-missing.csv"))
      yield* at.sim.faults.add({ match: { customer: "cus_T004", times: "always" }, action: { kind: "reset", at: "before" } })
      const first = yield* at.purser(["run", "ten.csv", "--json", "--report", "report.csv"], { PURSER_RUN_PATIENCE: "500 millis" })
      assert.deepStrictEqual([first.code, first.json?.["rows"], first.json?.["succeeded"], first.json?.["unresolved"]], [2, 10, 9, 1], first.stderr)
      assert.deepStrictEqual(at.report("report.csv").filter(({ state }) => state !== "succeeded").map(({ customer_id, line }) => [line, customer_id]), [["5", "c04"]])
      yield* at.sim.faults.clear
      const before = yield* at.calls
      // A refused file sends nothing at all, not even what an earlier run left open.
      at.write("bad.csv", csv(row("acme", "1.005")))
      assert.strictEqual((yield* at.purser(["run", "bad.csv", "--json"])).code, 1)
      assert.strictEqual(yield* at.calls, before)
      const second = yield* at.purser(["run", "ten.csv", "--json"])
      assert.deepStrictEqual([second.code, second.json?.["succeeded"], second.json?.["alreadySettled"]], [0, 10, 9], second.stderr)
      const moved = (yield* at.sim.requests).slice(before).reduce((sum, { paymentsMoved }) => sum + paymentsMoved, 0)
      assert.strictEqual(moved, 1)
      assert.strictEqual((yield* charged(at)).length, 10)
    }))

  live("G5: an answer that comes after its time-out settles nobody else's row", (at) =>
    Effect.gen(function*() {
      at.write("late.csv", csv(row("c1", "11.00"), row("c2", "12.00"), row("c3", "13.00")))
      yield* at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", customer: "cus_c1" }, action: { kind: "delay", at: "after", delayMs: 1500 } })
      const ended = yield* at.purser(["run", "late.csv", "--json", "--report", "report.csv"], {
        PURSER_REQUEST_TIMEOUT: "250 millis", PURSER_CLIENT_SOCKETS: "1", PURSER_CLIENT_JOIN: "1"
      })
      assert.deepStrictEqual([ended.code, ended.json?.["succeeded"]], [0, 3], ended.stderr)
      assert.deepStrictEqual(at.report("report.csv").map(({ amount, received }) => [amount, received]), [["11.00", "11.00"], ["12.00", "12.00"], ["13.00", "13.00"]])
      assert.deepStrictEqual(yield* charged(at), ["c1 2026-07 base 1100", "c2 2026-07 base 1200", "c3 2026-07 base 1300"])
    }))

  live("G5: a worker that stands still while everything is sent again and again is flooded when it wakes, and charges each row of the file once", (at) =>
    Effect.gen(function*() {
      at.write("late.csv", caseFile("G5-late.csv"))
      const [address, port] = [`tcp://127.0.0.1:${yield* freePort}`, yield* freePort]
      const transport = { PURSER_TRANSPORT: "router-dealer" }
      const worker = yield* at.start(["worker", "--endpoint", address], transport)
      yield* worker.says(`worker on ${address}`)
      yield* worker.kill("SIGSTOP")
      // The second row takes so long that it is sent again meanwhile, and is answered as often; the last one is held, so that somebody still listens then.
      const held = (customer: string, delayMs: number) =>
        at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", customer }, action: { kind: "delay", at: "before", delayMs } })
      yield* held("cus_T002", 1500)
      yield* held("cus_T003", 600_000)
      const run = yield* at.start(["run", "late.csv", "--json", "--workers", "0", "--report", "report.csv"], {
        ...transport, PURSER_ENDPOINT: address, PURSER_REQUEST_TIMEOUT: "150 millis", PURSER_REQUEST_RETRIES: "100", PURSER_METRICS_LISTEN: String(port)
      })
      const count = (name: string) =>
        Effect.map(Effect.promise(() => fetch(`http://127.0.0.1:${port}/metrics`).then((answer) => answer.text(), () => "")), (text) =>
          Number(new RegExp(`^purser_zmq_${name}_total (\\d+)`, "m").exec(text)?.[1] ?? 0))
      const atLeast = (name: string, least: number) =>
        run.meanwhile(Effect.repeat(count(name), { until: (found) => found >= least, schedule: Schedule.spaced("20 millis") }))
      yield* atLeast("resent_requests", 9)
      assert.strictEqual(yield* at.calls, 0)
      yield* worker.kill("SIGCONT")
      // Answers beyond the first of each request belong to nobody, and are counted.
      yield* atLeast("stray_replies", 1)
      yield* at.sim.faults.release
      const ended = yield* run.ended
      assert.deepStrictEqual([ended.code, ended.json?.["succeeded"]], [0, 3], ended.stderr)
      assert.deepStrictEqual(at.report("report.csv").map(({ customer_id, received, state }) => [customer_id, state, received]), ["c1", "c2", "c3"].map((customer) => [customer, "succeeded", "10.00"]))
      const confirms = (yield* at.sim.requests).filter(({ path }) => path.endsWith("/confirm"))
      assert.strictEqual(confirms.length, 3)
      assert.strictEqual((yield* charged(at)).length, 3)
    }))

  live("H1: a period that has not begun, is not over or is long past is billed only by name", (at) =>
    Effect.gen(function*() {
      const year = new Date(yield* Clock.currentTimeMillis).getUTCFullYear()
      const [future, open, past] = [`${year + 1}-10`, `${year}`, `${year - 2}-10`]
      at.write("h1.csv", csv(row("acme", "10.00", future), row("beta", "10.00", open), row("gamma", "10.00", past)))
      const refused = yield* at.purser(["run", "h1.csv", "--json"])
      assert.strictEqual(refused.code, 1)
      assert.include(refused.stderr, `line 2, column billing_period: "${future}" has not begun`)
      const asked = yield* at.purser(["run", "h1.csv", "--json", "--skip-invalid"])
      assert.strictEqual(asked.code, 1)
      assert.include(asked.stderr, `${open} is not over yet: allow it by name with --allow-period`)
      assert.strictEqual(yield* at.calls, 0)
      const late = yield* at.purser(["run", "h1.csv", "--json", "--allow-period", future!, "--allow-period", open!])
      assert.strictEqual(late.code, 1)
      assert.include(late.stderr, `${past} is over for more than a year: allow it by name with --allow-period`)
      assert.strictEqual(yield* at.calls, 0)
      const names = [future!, open!, past!].flatMap((period) => ["--allow-period", period])
      const allowed = yield* at.purser(["run", "h1.csv", "--json", "--actor", "ada", ...names])
      assert.strictEqual(allowed.code, 0, allowed.stderr)
      assert.include(allowed.stderr, `as ada decided: ${future} by --allow-period, ${open} by --allow-period, ${past} by --allow-period`)
      assert.strictEqual((yield* charged(at)).length, 3)
    }))

  live("H1: what a run would bill is shown beside the last period of the same length, with a warning when it is far off", (at) =>
    Effect.gen(function*() {
      at.write("june.csv", csv(row("acme", "10.00", "2026-06"), row("beta", "10.00", "2026-06")))
      at.write("quarter.csv", csv(row("acme", "500.00", "Q2-2026")))
      at.write("july.csv", csv(row("acme", "11.00"), row("beta", "10.00")))
      at.write("august.csv", csv(row("acme", "1100.00", "2026-08"), row("beta", "1000.00", "2026-08")))
      const june = yield* at.purser(["run", "june.csv"])
      assert.strictEqual(june.code, 0, june.stderr)
      assert.notInclude(june.stderr, " had ")
      assert.strictEqual((yield* at.purser(["run", "quarter.csv"])).code, 0)
      const july = yield* at.purser(["run", "july.csv"])
      assert.include(july.stderr, "2026-07 usd: 2 rows, 21.00; 2026-06 had 2 charges, 20.00")
      assert.notInclude(july.stderr, "warning")
      const august = yield* at.purser(["run", "august.csv", "--dry-run"])
      assert.include(august.stderr, "warning: 2026-08 usd: the sum is 10 times more or less than in 2026-07 (2 charges, 21.00)")
      // Where nobody can be asked, a cap that the wrong file itself would set holds nothing.
      const before = (yield* charged(at)).length
      const alone = yield* at.purser(["run", "august.csv"])
      assert.deepStrictEqual([alone.code, /nobody has said what to expect: name the total with --expected-total, or say --yes/.test(alone.stderr)], [1, true], alone.stderr)
      const named = yield* at.purser(["run", "august.csv", "--expected-total", "21.00"])
      assert.deepStrictEqual([named.code, (yield* charged(at)).length], [1, before], named.stderr)
      assert.strictEqual((yield* at.purser(["run", "august.csv", "--yes"])).code, 0)
      assert.strictEqual((yield* charged(at)).length, before + 2)
    }))

  live("H3: a difference is a line of its own; a new amount for a paid line is a conflict", (at) =>
    Effect.gen(function*() {
      at.write("h3.csv", caseFile("H3-upgrade.csv"))
      at.write("july.csv", csv(row("acme", "20.00")))
      at.write("upgrade.csv", csv(row("acme", "15.00", "2026-07", "upgrade-1"), row("acme", "35.00")))
      const whole = yield* at.purser(["run", "h3.csv", "--json"])
      assert.strictEqual(whole.code, 1)
      assert.include(whole.stderr, "lines 2 and 4 are one charge")
      assert.strictEqual((yield* at.purser(["run", "july.csv", "--json", "--expected-total", "100.00"])).code, 0)
      const upgrade = yield* at.purser(["run", "upgrade.csv", "--json"])
      assert.deepStrictEqual([upgrade.code, upgrade.json?.["succeeded"], upgrade.json?.["conflict"], upgrade.json?.["paidMinor"]], [2, 1, 1, { usd: 1500 }])
      const charges = (yield* at.purser(["status", "2026-07", "--json"])).json?.["charges"] as ReadonlyArray<Record<string, unknown>>
      assert.deepStrictEqual(charges.map(({ receivedMinor, state }) => [state, receivedMinor]), [["succeeded", 3500]])
      const view = (yield* at.purser(["show", "acme", "2026-07", "--json"])).json
      assert.deepStrictEqual(view?.["sums"], [{ currency: "usd", charges: 2, billedMinor: 3500, receivedMinor: 3500 }])
      assert.match((yield* at.purser(["show", "acme", "2026-07"])).stdout, /base +0 +succeeded[^]*upgrade-1[^]*sum +usd +35\.00 +35\.00/)
      assert.strictEqual((yield* at.purser(["show", "nobody", "2026-07"])).code, 1)
      assert.deepStrictEqual(yield* charged(at), ["acme 2026-07 base 2000", "acme 2026-07 upgrade-1 1500"])
    }))
})
