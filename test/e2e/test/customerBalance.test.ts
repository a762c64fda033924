/**
 * A balance that a customer has at Stripe would pay a part of an invoice, or be added to it. The charge was to be of its own amount,
 * so nothing is paid, and a person is told both amounts.
 */
import { assert, describe, it } from "@effect/vitest"
import { Ledger, SpendCap } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { StripeGateway } from "@purser/stripe"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { Effect, Layer } from "effect"
import { openCap, payments, pipelineOn } from "../src/World.ts"

const request = chargeFor("cust_1", "2026-07")
const stores = Layer.mergeAll(Ledger.layerMemory, SpendCap.layerMemory, StripeSim.layer())
const charge = Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(request)).pipe(Effect.provide(pipelineOn(StripeGateway.layerInvoicesWith())))

/** Another program's call of the same account. */
const asOther = (method: "GET" | "POST", path: string, body = "") =>
  Effect.map(
    Effect.flatMap(StripeSim, (sim) =>
      sim.send({ method, path, body, headers: { authorization: "Bearer sk_test_other", "content-type": "application/x-www-form-urlencoded" } })),
    (answer): Record<string, unknown> => JSON.parse(answer.body)
  )

describe("a customer with a balance", () => {
  for (const [name, balance, due] of [["a part", -300, "7.00"], ["all", -5000, "0.00"], ["more", 300, "13.00"]] as const) {
    it.live(`that would make it ${name} of the amount is not charged, and their balance stays as it is`, () =>
      Effect.gen(function*() {
        yield* openCap(request)
        yield* asOther("POST", "/v1/customers/cus_cust_1", `balance=${balance}`)
        const error = yield* Effect.flip(charge)
        assert.strictEqual(error.reason._tag, "ChargeQuarantined")
        assert.include(error.message, `amount is ${due} usd, not 10.00 usd`)
        assert.strictEqual(yield* payments(request), 0)
        assert.strictEqual((yield* asOther("GET", "/v1/customers/cus_cust_1"))["balance"], balance)
      }).pipe(Effect.provide(stores)))
  }

  it.live("of nothing is charged", () =>
    Effect.gen(function*() {
      yield* openCap(request)
      yield* asOther("POST", "/v1/customers/cus_cust_1", "balance=0")
      assert.strictEqual((yield* charge)._tag, "Succeeded")
      assert.strictEqual(yield* payments(request), 1)
    }).pipe(Effect.provide(stores)))
})
