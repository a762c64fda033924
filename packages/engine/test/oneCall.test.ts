/**
 * A charge whose only guard is its key: the database is asked before each call for money, however fresh the lease is by our own
 * clock. An object that is paid at most once needs no such question.
 */
import { assert, describe, it } from "@effect/vitest"
import { ChargeError, ChargeGateway, ChargeRequest, FaultPoint, GatewayTimeout, Ledger, SpendCap } from "@purser/core"
import { Effect, Layer, Result, Schema } from "effect"
import { ChargePipeline } from "../src/ChargePipeline.ts"
import { PipelineOptions, retryPolicy } from "../src/PipelineOptions.ts"

const request = Schema.decodeUnknownSync(ChargeRequest)({
  namespace: "zmq-billing", customerId: "acme", billingPeriod: "2026-07", amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_1", paymentMethod: "pm_1", allowFuture: true
})

interface Plan {
  readonly oneCall: boolean
  /** How many confirms are lost on their way. */
  readonly lost: number
  /** How often the lease is still ours, before somebody takes the charge over. */
  readonly ours: number
  /** Someone watches the places that a charge passes. */
  readonly watched: boolean
}

/** Charges, and answers what was asked of the database and of the processor in which order. */
const charged = ({ lost, oneCall, ours, watched }: Plan) =>
  Effect.gen(function*() {
    const asked: Array<string> = []
    const counted = (what: string) => asked.filter((one) => one === what).length
    const ledger = Layer.effect(Ledger, Effect.map(Ledger, (memory) => Ledger.of({
      ...memory,
      extend: (lease) => Effect.suspend(() => {
        asked.push("extend")
        return counted("extend") > ours ? Effect.succeed(false) : memory.extend(lease)
      })
    }))).pipe(Layer.provide(Ledger.layerMemory))
    const gateway = Layer.effect(ChargeGateway, Effect.map(ChargeGateway, (memory) => ChargeGateway.of({
      ...memory,
      isOneCall: () => oneCall,
      confirm: (order, input) => Effect.suspend(() => {
        asked.push("confirm")
        return counted("confirm") <= lost
          ? Effect.fail(new ChargeError({ reason: new GatewayTimeout({ operation: "confirm", timeoutMs: 1 }), chargeKey: order.chargeKey, requestId: null }))
          : memory.confirm(order, input)
      })
    }))).pipe(Layer.provide(ChargeGateway.layerMemory))
    const engine = ChargePipeline.layer.pipe(
      Layer.provideMerge(Layer.mergeAll(ledger, SpendCap.layerMemory, gateway)),
      Layer.provide(PipelineOptions.layer({ worker: "test", retry: retryPolicy({ attemptsMax: 5, backoffMs: 0, backoffMaxMs: 0 }), handBackMs: 0 })),
      Layer.provide(watched ? Layer.succeed(FaultPoint, () => Effect.void) : Layer.empty)
    )
    return yield* Effect.gen(function*() {
      yield* (yield* SpendCap).open({ ...request, expectedMinor: 1_000_000n, headroomPercent: 110 })
      const end = yield* Effect.result((yield* ChargePipeline).charge(request))
      return [Result.isSuccess(end) ? end.success._tag : end.failure.reason._tag, ...asked]
    }).pipe(Effect.provide(engine))
  })

describe("before each call for money", () => {
  for (const watched of [false, true]) {
    const where = watched ? ", at watched places" : ""
    it.effect(`the database is asked where only a key says that it is paid once${where}`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* charged({ oneCall: true, lost: 0, ours: 9, watched }), ["Succeeded", "extend", "confirm"])
        assert.deepStrictEqual(yield* charged({ oneCall: true, lost: 2, ours: 9, watched }), ["Succeeded", "extend", "confirm", "extend", "confirm", "extend", "confirm"])
      }))

    it.effect(`a worker that has lost the charge does not call again${where}`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* charged({ oneCall: true, lost: 0, ours: 0, watched }), ["LeaseLost", "extend"])
        assert.deepStrictEqual(yield* charged({ oneCall: true, lost: 2, ours: 1, watched }), ["LeaseLost", "extend", "confirm", "extend"])
      }))

    it.effect(`an object that is paid at most once is asked for by its fresh lease alone${where}`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* charged({ oneCall: false, lost: 1, ours: 9, watched }), ["Succeeded", "confirm", "confirm"])
      }))
  }
})
