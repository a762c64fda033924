import { StripeSim } from "@purser/stripe-sim"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { call, intentForm, raw, refusal, sdk, type Sim } from "./support.ts"

const intents = "/v1/payment_intents"
const terms = { amount: 1999, currency: "usd", customer: "cus_1", allowed_payment_method_types: ["card" as const] }
const create = (sim: Sim, method: string | undefined = "pm_card_visa") =>
  call(() =>
    sdk(sim).paymentIntents.create({ ...terms, ...(method === undefined ? {} : { payment_method: method }) })
  )
const confirm = (sim: Sim, id: string) => () => sdk(sim).paymentIntents.confirm(id, { off_session: true })

describe("a PaymentIntent", () => {
  it.effect("moves no money when it is created, and all of it when it is confirmed", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const intent = yield* create(sim)
      assert.strictEqual(intent.status, "requires_confirmation")
      assert.strictEqual(intent.amount_received, 0)
      assert.strictEqual(intent.latest_charge, null)
      assert.strictEqual(yield* sim.payments("cus_1", ""), 0)
      const paid = yield* call(confirm(sim, intent.id))
      assert.strictEqual(paid.status, "succeeded")
      assert.strictEqual(paid.amount_received, 1999)
      assert.match(String(paid.latest_charge), /^ch_/)
      const charge = yield* call(() => sdk(sim).charges.retrieve(String(paid.latest_charge)))
      assert.deepInclude(charge, { paid: true, status: "succeeded", payment_intent: intent.id, amount: 1999 })
    }))

  it.effect("succeeds at most once, whoever confirms and however often", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make({ idempotency: false })
      const intent = yield* create(sim)
      const outcomes = yield* Effect.forEach(
        Array.from({ length: 20 }),
        () => Effect.map(raw(sim, `${intents}/${intent.id}/confirm`, { body: "off_session=true" }), ({ status }) => status),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(outcomes.filter((status) => status === 200).length, 1)
      assert.strictEqual(outcomes.filter((status) => status === 400).length, 19)
      assert.strictEqual(yield* sim.payments("cus_1", ""), 1)
    }))

  it.effect("that has succeeded refuses confirm, cancel and other terms, and shows itself in the error", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const intent = yield* create(sim)
      yield* call(confirm(sim, intent.id))
      const again = yield* refusal(confirm(sim, intent.id))
      assert.strictEqual(again.statusCode, 400)
      assert.strictEqual(again.code, "payment_intent_unexpected_state")
      assert.include(again.message, "it has already succeeded")
      assert.deepInclude(again.payment_intent, { id: intent.id, status: "succeeded", amount_received: 1999 })
      const cancel = yield* refusal(() => sdk(sim).paymentIntents.cancel(intent.id))
      assert.strictEqual(cancel.code, "payment_intent_unexpected_state")
      const update = yield* refusal(() => sdk(sim).paymentIntents.update(intent.id, { amount: 1 }))
      assert.strictEqual(update.code, "payment_intent_unexpected_state")
      const noted = yield* call(() => sdk(sim).paymentIntents.update(intent.id, { metadata: { note: "kept" } }))
      assert.deepInclude(noted, { status: "succeeded", amount: 1999 })
      assert.strictEqual(noted.metadata["note"], "kept")
    }))

  it.effect("that was canceled never succeeds", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const intent = yield* create(sim)
      const canceled = yield* call(() =>
        sdk(sim).paymentIntents.cancel(intent.id, { cancellation_reason: "abandoned" })
      )
      assert.deepInclude(canceled, { status: "canceled", cancellation_reason: "abandoned" })
      assert.isNumber(canceled.canceled_at)
      const late = yield* refusal(confirm(sim, intent.id))
      assert.strictEqual(late.code, "payment_intent_unexpected_state")
      assert.include(late.message, "a status of canceled")
      assert.strictEqual(
        (yield* refusal(() => sdk(sim).paymentIntents.cancel(intent.id))).code,
        "payment_intent_unexpected_state"
      )
      assert.strictEqual(yield* sim.payments("cus_1", ""), 0)
      assert.strictEqual((yield* raw(sim, `${intents}/${intent.id}/cancel`, { body: "cancellation_reason=bored" })).status, 400)
    }))

  it.effect("needs a payment method to be confirmed; none is taken from the customer", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const bare = yield* call(() => sdk(sim).paymentIntents.create(terms))
      assert.strictEqual(bare.status, "requires_payment_method")
      const error = yield* refusal(confirm(sim, bare.id))
      assert.strictEqual(error.statusCode, 400)
      assert.strictEqual(error.code, "payment_intent_unexpected_state")
      assert.include(error.message, "missing a payment method")
      assert.strictEqual(error.payment_intent?.status, "requires_payment_method")
      const ready = yield* call(() => sdk(sim).paymentIntents.update(bare.id, { payment_method: "pm_mine" }))
      assert.strictEqual(ready.status, "requires_confirmation")
      assert.strictEqual((yield* call(confirm(sim, bare.id))).status, "succeeded")
    }))

  it.effect("can be created and confirmed in one call", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const paid = yield* call(() =>
        sdk(sim).paymentIntents.create({ ...terms, payment_method: "pm_card_visa", confirm: true, off_session: true })
      )
      assert.strictEqual(paid.status, "succeeded")
      const declined = yield* refusal(() =>
        sdk(sim).paymentIntents.create({ ...terms, payment_method: "pm_card_chargeDeclined", confirm: true })
      )
      assert.strictEqual(declined.statusCode, 402)
      assert.strictEqual(declined.payment_intent?.status, "requires_payment_method")
      assert.strictEqual((yield* raw(sim, intents, { body: "amount=100&currency=usd&confirm=true" })).status, 400)
    }))

  it.effect("asks for a return_url only where a redirect is possible", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const open = yield* call(() =>
        sdk(sim).paymentIntents.create({ amount: 500, currency: "usd", payment_method: "pm_card_visa" })
      )
      const error = yield* refusal(() => sdk(sim).paymentIntents.confirm(open.id))
      assert.include(error.message, "return_url")
      assert.strictEqual((yield* call(confirm(sim, open.id))).status, "succeeded")
    }))

  it.effect("shows objects in place of ids when it is asked to", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const intent = yield* create(sim)
      const paid = yield* call(() =>
        sdk(sim).paymentIntents.confirm(intent.id, {
          off_session: true,
          expand: ["latest_charge", "payment_method", "customer"]
        })
      )
      assert.deepInclude(paid.latest_charge, { object: "charge", paid: true })
      assert.deepInclude(paid.payment_method, { object: "payment_method", type: "card" })
      assert.deepInclude(paid.customer, { object: "customer", id: "cus_1" })
      const error = yield* refusal(() => sdk(sim).paymentIntents.retrieve(intent.id, { expand: ["weather"] }))
      assert.strictEqual(error.statusCode, 400)
    }))

  it.effect("is not found under an id that nobody made", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      for (const run of [confirm(sim, "pi_none"), () => sdk(sim).paymentIntents.retrieve("pi_none")]) {
        const error = yield* refusal(run)
        assert.deepInclude(error, { statusCode: 404, code: "resource_missing", param: "intent" })
      }
    }))
})

describe("parameters", () => {
  const rows: ReadonlyArray<readonly [body: string, code: string | undefined, param: string]> = [
    ["currency=usd", "parameter_missing", "amount"],
    ["amount=100", "parameter_missing", "currency"],
    ["amount=100&currency=usd&colour=red", "parameter_unknown", "colour"],
    ["amount=7840.000000000001&currency=usd", "parameter_invalid_integer", "amount"],
    ["amount=abc&currency=usd", "parameter_invalid_integer", "amount"],
    ["amount=1e3&currency=usd", "parameter_invalid_integer", "amount"],
    ["amount=0&currency=usd", "parameter_invalid_integer", "amount"],
    ["amount=-5&currency=usd", "parameter_invalid_integer", "amount"],
    ["amount=100&amount=999&currency=usd", "parameter_invalid_integer", "amount"],
    ["amount[]=5&currency=usd", "parameter_invalid_integer", "amount"],
    ["amount=100&currency=usd&customer=", "parameter_invalid_empty", "customer"],
    ["amount=100&currency=xyz", "parameter_invalid_string", "currency"],
    ["amount=100&currency=usd&customer=cus_NONE", "resource_missing", "customer"],
    ["amount=100&currency=usd&customer=cus_TDELETED", "resource_missing", "customer"],
    ["amount=100&currency=usd&payment_method=pm_NONE", "resource_missing", "payment_method"],
    ["amount=100&currency=usd&payment_method_types[0]=card", "payment_method_types_no_longer_supported", "payment_method_types"],
    ["amount=100&currency=usd&allowed_payment_method_types[0]=card&automatic_payment_methods[enabled]=true", "parameters_exclusive", "allowed_payment_method_types"],
    ["amount=100&currency=usd&off_session=true", undefined, "off_session"],
    ["amount=100&currency=usd&confirm=maybe", undefined, "confirm"],
    ["amount=100&currency=usd&transfer_group[a]=1", undefined, "transfer_group"],
    ["amount=100&currency=usd&application_fee_amount=1", undefined, "application_fee_amount"]
  ]
  for (const [body, code, param] of rows) {
    it.effect(`${body} is refused with 400 ${code ?? "without a code"}`, () =>
      Effect.gen(function*() {
        const sim = yield* StripeSim.make()
        const answer = yield* raw(sim, intents, { body })
        assert.strictEqual(answer.status, 400)
        assert.strictEqual(answer.json.error.type, "invalid_request_error")
        assert.strictEqual(answer.json.error.code, code)
        assert.strictEqual(answer.json.error.param, param)
        assert.lengthOf(yield* sim.books, 0)
      }))
  }

  it.effect("an older API version still takes payment_method_types", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const answer = yield* raw(sim, intents, {
        body: "amount=100&currency=usd&payment_method_types[0]=card",
        headers: { "stripe-version": "2025-08-27.basil" }
      })
      assert.deepStrictEqual(answer.json.payment_method_types, ["card"])
    }))

  it.effect("metadata keeps every key and is limited in number and length", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const kept = yield* raw(sim, intents, {
        body: intentForm("&metadata[constructor]=2&metadata[snow]=%E2%98%83%20%26")
      })
      assert.strictEqual(kept.json.metadata.constructor, "2")
      assert.strictEqual(kept.json.metadata.snow, "☃ &")
      const status = (more: string) => Effect.map(raw(sim, intents, { body: intentForm(more) }), (answer) => answer.status)
      const keys = (count: number) => Array.from({ length: count }, (_, at) => `&metadata[k${at}]=v`).join("")
      assert.strictEqual(yield* status(keys(50)), 200)
      assert.strictEqual(yield* status(keys(51)), 400)
      assert.strictEqual(yield* status(`&metadata[${"k".repeat(40)}]=v`), 200)
      assert.strictEqual(yield* status(`&metadata[${"k".repeat(41)}]=v`), 400)
      assert.strictEqual(yield* status(`&metadata[k]=${"v".repeat(500)}`), 200)
      assert.strictEqual(yield* status(`&metadata[k]=${"v".repeat(501)}`), 400)
    }))

  it.effect("an update merges metadata, and empty values remove", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const { id } = (yield* raw(sim, intents, { body: intentForm("&metadata[a]=1&metadata[b]=2") })).json
      const merged = yield* raw(sim, `${intents}/${id}`, { body: "metadata[b]=&metadata[c]=3" })
      assert.deepStrictEqual(merged.json.metadata, { a: "1", c: "3" })
      const emptied = yield* raw(sim, `${intents}/${id}`, { body: "metadata=" })
      assert.deepStrictEqual(emptied.json.metadata, {})
    }))
})

describe("the list", () => {
  it.effect("is newest first, in pages, per customer and from a time", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim.make()
      const ids: Array<string> = []
      for (let at = 0; at < 7; at++) {
        if (at === 4) yield* sim.advanceClock("1 hour")
        ids.unshift((yield* call(() => sdk(sim).paymentIntents.create({ ...terms, customer: `cus_${at % 2}` }))).id)
      }
      const page = (params: Parameters<ReturnType<typeof sdk>["paymentIntents"]["list"]>[0]) =>
        Effect.map(call(() => sdk(sim).paymentIntents.list(params)), (list) => [list.data.map(({ id }) => id), list.has_more] as const)
      assert.deepStrictEqual(yield* page({}), [ids, false])
      assert.deepStrictEqual(yield* page({ limit: 3 }), [ids.slice(0, 3), true])
      assert.deepStrictEqual(yield* page({ limit: 3, starting_after: ids[2] ?? "" }), [ids.slice(3, 6), true])
      assert.deepStrictEqual(yield* page({ limit: 3, starting_after: ids[5] ?? "" }), [ids.slice(6), false])
      assert.deepStrictEqual(yield* page({ limit: 2, ending_before: ids[4] ?? "" }), [ids.slice(2, 4), true])
      assert.deepStrictEqual(yield* page({ customer: "cus_1" }), [ids.filter((_, at) => at % 2 === 1), false])
      assert.deepStrictEqual(yield* page({ customer: "cus_1", starting_after: ids[1] ?? "" }), [ids.filter((_, at) => at === 3 || at === 5), false])
      assert.deepStrictEqual(yield* page({ customer: "cus_nobody" }), [[], false])
      const fromS = Math.floor((yield* sim.nowMs) / 1000) - 1800
      assert.deepStrictEqual(yield* page({ created: { gte: fromS } }), [ids.slice(0, 3), false])
      assert.deepStrictEqual(yield* page({ created: { lt: fromS } }), [ids.slice(3), false])
      const all = yield* call(() => sdk(sim).paymentIntents.list({ limit: 2 }).autoPagingToArray({ limit: 100 }))
      assert.deepStrictEqual(all.map(({ id }) => id), ids)
      assert.strictEqual((yield* raw(sim, `${intents}?limit=101`)).status, 400)
      assert.strictEqual((yield* raw(sim, `${intents}?metadata[a]=1`)).json.error.code, "parameter_unknown")
    }))
})
