import { type FaultAction, StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { call, raw, sdk, type Sim } from "./support.ts"

/** A POST that makes or changes something, and how often that has been done. */
interface Act {
  readonly path: string
  readonly body: string
  readonly done: Effect.Effect<number>
}

const eventsOf = (sim: Sim, type: string) =>
  Effect.map(Effect.orDie(call(() => sdk(sim).events.list({ type, limit: 100 }))), ({ data }) => data.length)

const prepared = (sim: Sim) =>
  Effect.gen(function*() {
    const stripe = sdk(sim)
    const charge = yield* call(() => stripe.charges.create({ amount: 5000, currency: "usd", customer: "cus_1" }))
    const invoice = yield* call(() => stripe.invoices.create({ customer: "cus_1", currency: "usd" }))
    yield* call(() => stripe.invoices.addLines(invoice.id, { lines: [{ amount: 500 }] }))
    const open = yield* call(() => stripe.invoices.create({ customer: "cus_1", currency: "usd" }))
    yield* call(() => stripe.invoices.addLines(open.id, { lines: [{ amount: 500 }] }))
    yield* call(() => stripe.invoices.finalizeInvoice(open.id))
    return { charge: charge.id, draft: invoice.id, open: open.id }
  })

const acts: Readonly<Record<string, (sim: Sim, ids: { charge: string; draft: string; open: string }) => Act>> = {
  "a charge": (sim) => ({
    path: "/v1/charges",
    body: "amount=700&currency=usd&customer=cus_2",
    done: sim.payments("cus_2", "")
  }),
  "a refund": (sim, { charge }) => ({
    path: "/v1/refunds",
    body: `charge=${charge}&amount=100`,
    done: eventsOf(sim, "refund.created")
  }),
  "an invoice item": (sim, { draft }) => ({
    path: "/v1/invoiceitems",
    body: `customer=cus_1&invoice=${draft}&amount=100&currency=usd&description=again`,
    done: Effect.map(Effect.orDie(call(() => sdk(sim).invoiceItems.list({ invoice: draft }))), ({ data }) =>
      data.filter(({ description }) => description === "again").length)
  }),
  "an invoice": (sim) => ({
    path: "/v1/invoices",
    body: "customer=cus_3",
    done: Effect.map(Effect.orDie(call(() => sdk(sim).invoices.list({ customer: "cus_3" }))), ({ data }) => data.length)
  }),
  "finalizing": (sim, { draft }) => ({
    path: `/v1/invoices/${draft}/finalize`,
    body: "",
    done: Effect.map(eventsOf(sim, "invoice.finalized"), (count) => count - 1)
  }),
  "paying an invoice": (sim, { open }) => ({
    path: `/v1/invoices/${open}/pay`,
    body: "",
    done: eventsOf(sim, "invoice.paid")
  }),
  "voiding": (sim, { open }) => ({
    path: `/v1/invoices/${open}/void`,
    body: "",
    done: eventsOf(sim, "invoice.voided")
  })
}

const withAct = (name: string, test: (sim: Sim, act: Act) => Effect.Effect<void, unknown>) =>
  Effect.gen(function*() {
    const sim = yield* StripeSim.make()
    const act = acts[name]!(sim, yield* prepared(sim))
    assert.strictEqual(yield* act.done, 0)
    yield* test(sim, act)
  })

const order = (sim: Sim, { path }: Act, action: FaultAction) => sim.faults.add({ match: { method: "POST", path }, action })

describe.each(Object.keys(acts))("%s", (name) => {
  it.effect("lost on the way in is done by the repeat, once", () =>
    withAct(name, (sim, act) =>
      Effect.gen(function*() {
        yield* order(sim, act, { kind: "reset", at: "before" })
        yield* Effect.flip(raw(sim, act.path, { body: act.body, key: "k" }))
        assert.strictEqual(yield* act.done, 0)
        const again = yield* raw(sim, act.path, { body: act.body, key: "k" })
        assert.deepStrictEqual([again.status, again.headers["idempotent-replayed"]], [200, undefined])
        assert.strictEqual(yield* act.done, 1)
      })))

  it.effect("whose answer is lost was done, and the repeat replays it", () =>
    withAct(name, (sim, act) =>
      Effect.gen(function*() {
        yield* order(sim, act, { kind: "reset", at: "after" })
        yield* Effect.flip(raw(sim, act.path, { body: act.body, key: "k" }))
        assert.strictEqual(yield* act.done, 1)
        const again = yield* raw(sim, act.path, { body: act.body, key: "k" })
        assert.deepStrictEqual([again.status, again.headers["idempotent-replayed"]], [200, "true"])
        assert.strictEqual(yield* act.done, 1)
      })))

  it.effect("answered with a 500 that is kept and rolled forward later is done then, and the key keeps the 500", () =>
    withAct(name, (sim, act) =>
      Effect.gen(function*() {
        yield* order(sim, act, { kind: "serverError", effect: "later", stored: true, laterMs: 1000 })
        assert.strictEqual((yield* raw(sim, act.path, { body: act.body, key: "k" })).status, 500)
        assert.strictEqual(yield* act.done, 0)
        yield* sim.advanceClock("2 seconds")
        assert.strictEqual(yield* act.done, 1)
        assert.strictEqual((yield* raw(sim, act.path, { body: act.body, key: "k" })).status, 500)
        assert.strictEqual(yield* act.done, 1)
      })))

  it.effect("held up by a 409 or a 429 was not done, and is not kept", () =>
    withAct(name, (sim, act) =>
      Effect.gen(function*() {
        yield* order(sim, act, { kind: "keyInUse" })
        yield* sim.faults.add({ match: { path: act.path, nth: 2 }, action: { kind: "rateLimited" } })
        assert.strictEqual((yield* raw(sim, act.path, { body: act.body, key: "k" })).status, 409)
        assert.strictEqual((yield* raw(sim, act.path, { body: act.body, key: "k" })).status, 429)
        assert.strictEqual(yield* act.done, 0)
        assert.strictEqual((yield* raw(sim, act.path, { body: act.body, key: "k" })).status, 200)
        assert.strictEqual(yield* act.done, 1)
      })))
})
