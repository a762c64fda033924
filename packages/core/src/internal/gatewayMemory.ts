/**
 * A processor in memory: objects that are paid at most once, and idempotency keys that answer the first answer again.
 * Methods named like Stripe's test cards are declined, so that a trial shows refusals too.
 */
import { Clock, Effect } from "effect"
import { AuthenticationRequired, CardDeclined, ChargeError, type ChargeErrorReason, InvalidRequest } from "../ChargeError.ts"
import type { ChargeGateway, GatewayOrder, GatewayPayment } from "../ChargeGateway.ts"

interface Stored extends GatewayPayment {
  readonly createdMs: number
}

const declines: ReadonlyArray<readonly [string, string, string | null]> = [
  ["InsufficientFunds", "card_declined", "insufficient_funds"],
  ["LostCard", "card_declined", "lost_card"],
  ["ExpiredCard", "expired_card", null],
  ["IncorrectCvc", "incorrect_cvc", null],
  ["Declined", "card_declined", "generic_decline"],
  ["chargeCustomerFail", "card_declined", "generic_decline"]
]

/** Payments that succeeded, by charge key: the memory processor's own books. */
export const memoryBooks = new WeakMap<object, () => ReadonlyMap<string, { readonly payments: number; readonly amountMinor: number; readonly order: GatewayOrder }>>()

export const makeGatewayMemory = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const objects = new Map<string, { payment: Stored; readonly order: GatewayOrder }>()
  const keys = new Map<string, string>()
  let refusals = 0

  const fail = (order: GatewayOrder, reason: ChargeErrorReason) =>
    Effect.fail(new ChargeError({ reason, chargeKey: order.chargeKey, requestId: null }))
  const absent = (order: GatewayOrder, id: string) =>
    fail(order, new InvalidRequest({ param: "intent", code: "resource_missing", detail: `No such payment_intent: '${id}'` }))
  const update = (id: string, order: GatewayOrder, change: Partial<GatewayPayment>) => {
    const entry = objects.get(id)
    if (entry === undefined) return absent(order, id)
    entry.payment = { ...entry.payment, ...change }
    return Effect.succeed(entry.payment)
  }

  const service: ChargeGateway["Service"] = {
    name: "memory",
    create: (order, keySuffix) =>
      Effect.suspend(() => {
        const { request } = order
        if (/DELETED|NONE/.test(request.stripeCustomerId)) {
          return fail(order, new InvalidRequest({ param: "customer", code: "resource_missing", detail: `No such customer: '${request.stripeCustomerId}'` }))
        }
        const key = `${order.chargeKey}:g${order.generation}:create${keySuffix}`
        const known = keys.get(key)
        if (known !== undefined) return Effect.succeed(objects.get(known)!.payment)
        const payment: Stored = {
          id: `pi_memory_${objects.size + 1}`,
          status: "unconfirmed",
          amountMinor: request.amountMinor,
          amountReceivedMinor: 0,
          currency: request.currency,
          stripeCustomerId: request.stripeCustomerId,
          chargeKey: order.chargeKey,
          generation: order.generation,
          chargeId: null,
          decline: null,
          createdMs: clock.currentTimeMillisUnsafe()
        }
        keys.set(key, payment.id)
        objects.set(payment.id, { payment, order })
        return Effect.succeed(payment)
      }),
    find: (order, sinceMs) =>
      Effect.sync(() => {
        const ours = [...objects.values()].map(({ payment }) => payment).filter((payment) =>
          payment.chargeKey === order.chargeKey && payment.status !== "canceled" && payment.createdMs >= sinceMs
        )
        return ours.find((payment) => payment.status === "succeeded") ?? ours[0]
      }),
    retrieve: (order, id) => Effect.suspend(() => update(id, order, {})),
    defaultPaymentMethod: (order) => Effect.succeed(`pm_default_${order.request.stripeCustomerId}`),
    confirm: (order, input) =>
      Effect.suspend(() => {
        const entry = objects.get(input.id)
        if (entry === undefined) return absent(order, input.id)
        const { payment } = entry
        if (payment.status === "succeeded" || payment.status === "canceled") return Effect.succeed(payment)
        if (/authenticationRequired|threeDSecure/.test(input.paymentMethod)) {
          return fail(order, new AuthenticationRequired({ detail: "the bank wants the customer to authenticate" }))
        }
        const decline = declines.find(([name]) => input.paymentMethod.includes(name))
        if (decline !== undefined) {
          const [, code, declineCode] = decline
          const chargeId = `ch_declined_${refusals += 1}`
          const detail = "Your card was declined."
          entry.payment = { ...payment, status: "declined", decline: { code, declineCode, detail, adviceCode: null, chargeId } }
          return fail(order, new CardDeclined({ code, declineCode, declinedChargeId: chargeId, detail }))
        }
        return update(input.id, order, { status: "succeeded", amountReceivedMinor: payment.amountMinor, chargeId: `ch_${input.id}`, decline: null })
      }),
    cancel: (order, id) =>
      Effect.suspend(() => {
        const entry = objects.get(id)
        if (entry === undefined) return absent(order, id)
        return entry.payment.status === "succeeded" ? Effect.succeed(entry.payment) : update(id, order, { status: "canceled" })
      })
  }
  memoryBooks.set(service, () => {
    const books = new Map<string, { payments: number; amountMinor: number; order: GatewayOrder }>()
    for (const { order, payment } of objects.values()) {
      if (payment.status !== "succeeded") continue
      const found = books.get(order.chargeKey)
      books.set(order.chargeKey, { payments: (found?.payments ?? 0) + 1, amountMinor: (found?.amountMinor ?? 0) + payment.amountReceivedMinor, order })
    }
    return books
  })
  return service
})
