/**
 * The gateway on invoices, on both databases. A worker dies at every single call that it makes to Stripe, before the call is
 * carried out and after; whoever goes on adds no line twice and pays once.
 */
import { assert, describe, it } from "@effect/vitest"
import { type ChargeOutcome, ChargeGateway, Ledger, type PipelineError } from "@purser/core"
import { ChargePipeline, Sweeper } from "@purser/engine"
import { StripeClient, StripeGateway } from "@purser/stripe"
import { type Fault, StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { type Duration, Effect, Exit, Fiber, Layer } from "effect"
import { databases } from "../src/Long.ts"
import { advance, Crash, openCap, payments, world } from "../src/World.ts"

const request = chargeFor("cust_1", "2026-07")
const charge = Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(request))
const sweep = Effect.flatMap(Sweeper, (sweeper) => sweeper.sweepOnce)
const row = Effect.flatMap(Ledger, (ledger) => ledger.find(request.chargeKey))
const tagOf = (effect: Effect.Effect<ChargeOutcome, PipelineError, ChargePipeline>) => Effect.map(effect, (outcome) => outcome._tag)
const addFault = (path: string, action: Fault["action"], times: number | "always" = 1) =>
  Effect.flatMap(StripeSim, (sim) => sim.faults.add({ match: { method: "POST", path, times }, action }))

const lines = [
  { id: "seats", amountMinor: 700, description: "7 seats" },
  { id: "storage", amountMinor: 500 },
  { id: "credit", amountMinor: -200 }
]

/** A call after which, or before which, the process is gone. */
interface Death {
  call: number
  when: "before" | "after"
}

/** A client that makes its process die at a call, once. */
const dying = (death: Death) =>
  Layer.effect(StripeClient, Effect.gen(function*() {
    const client = yield* StripeClient
    let calls = 0
    return StripeClient.of({
      ...client,
      call: (operation, use) =>
        Effect.suspend(() => {
          calls += 1
          if (calls !== death.call) return client.call(operation, use)
          const die = Effect.die(new Error(`crash ${death.when} ${operation}`))
          return death.when === "before" ? die : Effect.andThen(client.call(operation, use), die)
        })
    })
  }))

const gatewayOf = (of: ReadonlyArray<(typeof lines)[number] | { readonly id: string; readonly amountMinor: number }> = lines) =>
  StripeGateway.layerInvoicesWith({ lines: () => of })

/** The account's view, for a judge who is not the engine. */
const get = (path: string) =>
  Effect.flatMap(StripeSim, ({ url }) =>
    Effect.promise(() => fetch(`${url}${path}`, { headers: { authorization: "Bearer sk_test_judge" } }).then((answer) => answer.json() as Promise<any>)))
const post = (path: string, body = "") =>
  Effect.flatMap(StripeSim, ({ url }) =>
    Effect.promise(() => fetch(`${url}${path}`, {
      method: "POST",
      headers: { authorization: "Bearer sk_test_judge", "content-type": "application/x-www-form-urlencoded" },
      body
    })))

const paysOnce = Effect.gen(function*() {
  assert.strictEqual((yield* row)?.state, "succeeded")
  assert.isTrue((yield* charge).alreadySettled)
  const books = (yield* (yield* StripeSim).books).filter((entry) => entry.payments > 0)
  assert.deepStrictEqual(books.map(({ amountMinor, payments }) => [payments, amountMinor]), [[1, 1000]])
  const invoices = (yield* get("/v1/invoices?limit=100")).data as ReadonlyArray<{ id: string; status: string; total: number }>
  const paid = invoices.filter(({ status }) => status === "paid")
  assert.deepStrictEqual(paid.map(({ total }) => total), [1000])
  const found = (yield* get(`/v1/invoices/${paid[0]!.id}/lines?limit=100`)).data as ReadonlyArray<{ amount: number; metadata: { line: string } }>
  assert.deepStrictEqual(found.map(({ amount, metadata }) => [metadata.line, amount]).toSorted(), lines.map(({ amountMinor, id }) => [id, amountMinor]).toSorted())
})

for (const [name, database] of databases) {
  const at = (gateway: Parameters<typeof world>[2]) => world(database, {}, gateway)
  const live = (
    title: string,
    test: Effect.Effect<void, unknown, Layer.Success<ReturnType<typeof world>>>,
    gateway: Parameters<typeof world>[2] = gatewayOf()
  ) => it.live(title, () => Effect.andThen(openCap(request), test).pipe(Effect.provide(at(gateway))))

  describe(`invoices gateway on ${name}`, () => {
    // create, list lines, three lines, total, finalize, pay, its payment
    const callsOfACharge = 9
    live("makes, fills, checks, finalizes and pays, each under a key of its own", Effect.gen(function*() {
      const outcome = yield* charge
      assert.match(outcome._tag === "Succeeded" ? `${outcome.paymentIntentId} ${outcome.chargeId}` : outcome._tag, /^in_\w+ ch_\w+$/)
      const requests = yield* (yield* StripeSim).requests
      assert.strictEqual(requests.length, callsOfACharge)
      assert.deepStrictEqual(
        requests.filter(({ method }) => method === "POST").map(({ idempotencyKey }) => idempotencyKey?.replace(request.chargeKey, "")),
        [":g1:invoice", ":g1:line:seats", ":g1:line:storage", ":g1:line:credit", ":g1:finalize", ":g1:pay:1"]
      )
      yield* paysOnce
    }))

    // What matters here is Stripe's side: one of the databases is enough for so many deaths.
    for (let call = 1; call <= (name === "postgres" ? callsOfACharge : 0); call++) {
      for (const when of ["before", "after"] as const) {
        for (const later of ["1 minute", "3 days"] as const satisfies ReadonlyArray<Duration.Input>) {
          live(`dies ${when} call ${call}, taken up after ${later}`, Effect.gen(function*() {
            assert.isTrue(Exit.hasDies(yield* Effect.exit(charge)))
            yield* advance(later)
            yield* sweep
            yield* paysOnce
          }), gatewayOf().pipe(Layer.provide(dying({ call, when }))))
        }
      }
    }

    const faults: ReadonlyArray<readonly [string, string, Fault["action"]]> = [
      ["create reset after it was carried out", "/v1/invoices", { kind: "reset", at: "after" }],
      ["a stored 500 on create, an invoice made", "/v1/invoices", { kind: "serverError", effect: "done", stored: true }],
      ["a line reset after it was added", "/v1/invoiceitems", { kind: "reset", at: "after" }],
      ["a stored 500 on a line, added", "/v1/invoiceitems", { kind: "serverError", effect: "done", stored: true }],
      ["a stored 500 on a line, not added", "/v1/invoiceitems", { kind: "serverError", effect: "none", stored: true }],
      ["a stored 500 on finalize, done", "/v1/invoices/*/finalize", { kind: "serverError", effect: "done", stored: true }],
      ["a stored 500 on finalize, not done", "/v1/invoices/*/finalize", { kind: "serverError", effect: "none", stored: true }],
      ["pay reset after it was carried out", "/v1/invoices/*/pay", { kind: "reset", at: "after" }],
      ["a stored 500 on pay, paid", "/v1/invoices/*/pay", { kind: "serverError", effect: "done", stored: true }],
      ["a stored 500 on pay, not paid", "/v1/invoices/*/pay", { kind: "serverError", effect: "none", stored: true }],
      ["a 502 page on pay, paid", "/v1/invoices/*/pay", { kind: "badGateway", effect: "done" }],
      ["429 on a line", "/v1/invoiceitems", { kind: "rateLimited" }]
    ]
    for (const [title, path, action] of faults) {
      live(title, Effect.gen(function*() {
        yield* addFault(path, action)
        assert.strictEqual(yield* tagOf(charge), "Succeeded")
        yield* paysOnce
      }))
    }

    live("two workers at once, with idempotency off: a line that is there twice stops everything, unpaid", Effect.gen(function*() {
      const sim = yield* StripeSim
      yield* sim.setIdempotency(false)
      const held = yield* (yield* Crash).holdAt("after-attach")
      const slow = yield* Effect.forkChild(Effect.exit(charge))
      yield* held.arrived
      const id = (yield* row)!.paymentIntentId!
      // What a second worker adds between our look and our adding.
      yield* post("/v1/invoiceitems", `customer=cus_cust_1&invoice=${id}&amount=700&currency=usd&metadata[line]=late&metadata[charge_key]=${request.chargeKey}`)
      yield* held.go
      yield* Fiber.join(slow)
      assert.match((yield* row)?.quarantine ?? "", /amount is 17.00 usd, not 10.00 usd/)
      assert.strictEqual((yield* get(`/v1/invoices/${id}`)).status, "draft")
      assert.strictEqual(yield* payments(request), 0)
    }))

    live("a worker that wakes after days pays no second time", Effect.gen(function*() {
      const held = yield* (yield* Crash).holdAt("before-confirm")
      const paused = yield* Effect.forkChild(charge)
      yield* held.arrived
      yield* advance("5 days")
      yield* sweep
      assert.strictEqual(yield* payments(request), 1)
      yield* held.go
      assert.strictEqual((yield* Fiber.join(paused))._tag, "Succeeded")
      yield* paysOnce
    }))

    live("a decline, then a new attempt of the same invoice", Effect.gen(function*() {
      const declining = chargeFor("cust_2", "2026-07", { paymentMethod: null, stripeCustomerId: "cus_second" })
      const gateway = yield* ChargeGateway
      const ledger = yield* Ledger
      let card = "pm_card_visa_chargeDeclinedInsufficientFunds"
      const cards = ChargePipeline.layer.pipe(Layer.provide(Layer.succeed(ChargeGateway, { ...gateway, defaultPaymentMethod: () => Effect.succeed(card) })))
      const again = Effect.flatMap(ChargePipeline, (p) => p.charge(declining)).pipe(Effect.provide(cards, { local: true }))
      const outcome = yield* again
      assert.strictEqual(outcome._tag === "Declined" ? outcome.declineCode : outcome._tag, "insufficient_funds")
      assert.strictEqual(yield* ledger.reopen({ chargeKeys: [declining.chargeKey], from: ["declined"], actor: "test", reason: "new card" }), 1)
      card = "pm_card_visa"
      assert.strictEqual((yield* again)._tag, "Succeeded")
      assert.strictEqual(yield* payments(declining), 1)
      const paid = (yield* (yield* StripeSim).requests).filter(({ path }) => path.endsWith("/pay")).map(({ idempotencyKey }) => idempotencyKey)
      assert.deepStrictEqual(paid, [`${declining.chargeKey}:g1:pay:1`, `${declining.chargeKey}:g1:pay:2`])
      assert.strictEqual(((yield* get("/v1/invoices?limit=100")).data as ReadonlyArray<unknown>).length, 1)
    }))

    live("a bank that wants the customer", Effect.gen(function*() {
      const asking = chargeFor("cust_3", "2026-07", { paymentMethod: "pm_card_authenticationRequired" })
      assert.strictEqual((yield* (yield* ChargePipeline).charge(asking))._tag, "RequiresAction")
      assert.strictEqual(yield* payments(asking), 0)
    }))

    live("an invoice that was voided at Stripe: a new generation", Effect.gen(function*() {
      yield* (yield* Crash).at("before-confirm")
      yield* Effect.exit(charge)
      const id = (yield* row)!.paymentIntentId!
      assert.strictEqual((yield* post(`/v1/invoices/${id}/void`)).status, 200)
      yield* advance("1 minute")
      yield* sweep
      assert.strictEqual((yield* row)?.generation, 2)
      yield* paysOnce
    }))

    live("a pending item of the customer's is left alone", Effect.gen(function*() {
      yield* post("/v1/invoiceitems", "customer=cus_cust_1&amount=99999&currency=usd")
      assert.strictEqual(yield* tagOf(charge), "Succeeded")
      yield* paysOnce
    }))

    live("lines that do not come to the charge's amount: quarantined as a draft, not finalized", Effect.gen(function*() {
      assert.strictEqual((yield* Effect.flip(charge)).reason._tag, "ChargeQuarantined")
      assert.strictEqual(yield* payments(request), 0)
      const finalized = (yield* (yield* StripeSim).requests).filter(({ path }) => path.endsWith("/finalize"))
      assert.strictEqual(finalized.length, 0)
    }), gatewayOf([{ id: "seats", amountMinor: 700 }]))

    live("lines that cannot be told apart are refused", Effect.gen(function*() {
      const outcome = yield* charge
      assert.strictEqual(outcome._tag === "Rejected" ? outcome.code : outcome._tag, "lines_invalid")
      assert.strictEqual(yield* payments(request), 0)
    }), gatewayOf([{ id: "seats", amountMinor: 500 }, { id: "seats", amountMinor: 500 }]))
  })
}
