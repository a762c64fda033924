/**
 * The memory processor with books and faults: a test reads from it how often a customer paid, and makes any call fail
 * before it reaches the processor or after it was carried out.
 */
import { ChargeError, type ChargeErrorReason, ChargeGateway, GatewayTimeout, type ChargeKey } from "@purser/core"
import { memoryBooks } from "@purser/core/testing"
import { Context, Effect, Layer } from "effect"

/** The calls that can be made to fail. */
export type GatewayStep = "create" | "find" | "retrieve" | "confirm" | "cancel" | "defaultPaymentMethod"

/** One planned fault: `before` the call is carried out, or `after` it. */
export interface GatewayFault {
  readonly step: GatewayStep
  readonly when: "before" | "after"
  readonly reason?: ChargeErrorReason
}

/** The test's side of the processor. */
export class MockGateway extends Context.Service<MockGateway, {
  readonly fail: (fault: GatewayFault, times: number) => Effect.Effect<void>
  readonly paymentsOf: (customerId: string, billingPeriod: string) => Effect.Effect<number>
  readonly clear: Effect.Effect<void>
  readonly calls: Effect.Effect<ReadonlyArray<GatewayStep>>
}>()("@purser/testkit/MockGateway") {
  /** `ChargeGateway` and its test side. */
  static readonly layer: Layer.Layer<MockGateway | ChargeGateway> = Layer.effectContext(Effect.gen(function*() {
    const inner = yield* ChargeGateway
    const faults: Array<GatewayFault> = []
    const calls: Array<GatewayStep> = []
    const books = memoryBooks.get(inner)
    if (books === undefined) return yield* Effect.die(new Error("Bug: the memory gateway has no books"))

    const fault = (step: GatewayStep, when: GatewayFault["when"], chargeKey: ChargeKey) =>
      Effect.suspend(() => {
        const index = faults.findIndex((planned) => planned.step === step && planned.when === when)
        if (index < 0) return Effect.void
        const reason = faults.splice(index, 1)[0]!.reason ?? new GatewayTimeout({ operation: step, timeoutMs: 1 })
        return Effect.fail(new ChargeError({ reason, chargeKey, requestId: null }))
      })
    const wrap = <A>(step: GatewayStep, chargeKey: ChargeKey, call: Effect.Effect<A, ChargeError>) =>
      Effect.sync(() => void calls.push(step)).pipe(
        Effect.andThen(fault(step, "before", chargeKey)),
        Effect.andThen(call),
        Effect.tap(() => fault(step, "after", chargeKey))
      )

    return Context.make(ChargeGateway, {
      name: "mock",
      create: (order, keySuffix) => wrap("create", order.chargeKey, inner.create(order, keySuffix)),
      find: (order, sinceMs) => wrap("find", order.chargeKey, inner.find(order, sinceMs)),
      retrieve: (order, id) => wrap("retrieve", order.chargeKey, inner.retrieve(order, id)),
      defaultPaymentMethod: (order) => wrap("defaultPaymentMethod", order.chargeKey, inner.defaultPaymentMethod(order)),
      confirm: (order, input) => wrap("confirm", order.chargeKey, inner.confirm(order, input)),
      cancel: (order, id) => wrap("cancel", order.chargeKey, inner.cancel(order, id))
    }).pipe(Context.add(MockGateway, {
      fail: (planned, times) => Effect.sync(() => void faults.push(...Array.from({ length: times }, () => planned))),
      clear: Effect.sync(() => void faults.splice(0)),
      calls: Effect.sync(() => [...calls]),
      paymentsOf: (customerId, billingPeriod) =>
        Effect.sync(() => {
          let payments = 0
          for (const entry of books().values()) {
            const { request } = entry.order
            if (request.customerId === customerId && request.billingPeriod === billingPeriod) payments += entry.payments
          }
          return payments
        })
    }))
  })).pipe(Layer.provide(ChargeGateway.layerMemory))

  /** Succeeded payments of a customer and (canonical) period, by the processor's own books. */
  static readonly payments = (customerId: string, billingPeriod: string) =>
    Effect.flatMap(MockGateway, (mock) => mock.paymentsOf(customerId, billingPeriod))
  /** The next `times` calls of a step fail, before or after they are carried out. */
  static readonly fail = (fault: GatewayFault, times = 1) => Effect.flatMap(MockGateway, (mock) => mock.fail(fault, times))
  /** Forgets the planned faults. */
  static readonly clear = Effect.flatMap(MockGateway, (mock) => mock.clear)
}
