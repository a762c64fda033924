/** Refunds in memory: idempotency keys that answer the first answer again. It knows no payments, so that it has no ceiling. */
import { Effect } from "effect"
import { ChargeError, InvalidRequest } from "../ChargeError.ts"
import type { GatewayRefund, RefundGateway, RefundOrder } from "../RefundGateway.ts"

/** Refunds by payment: the memory processor's own books. */
export const memoryRefunds = new WeakMap<object, () => ReadonlyArray<GatewayRefund>>()

export const makeRefundGatewayMemory = Effect.sync((): RefundGateway["Service"] => {
  const objects = new Map<string, GatewayRefund>()
  const keys = new Map<string, string>()
  const service: RefundGateway["Service"] = {
    refund: (order) =>
      Effect.sync(() => {
        const key = `${order.refundKey}:refund:${order.attempt}`
        const known = objects.get(keys.get(key) ?? "")
        if (known !== undefined) return known
        const made: GatewayRefund = {
          id: `re_memory_${objects.size + 1}`,
          status: "succeeded",
          amountMinor: order.amountMinor,
          currency: order.currency,
          paymentIntentId: order.paymentIntentId,
          chargeId: order.chargeId,
          refundKey: order.refundKey,
          detail: null
        }
        keys.set(key, made.id)
        objects.set(made.id, made)
        return made
      }),
    find: (order) => Effect.sync(() => [...objects.values()].filter(({ refundKey }) => refundKey === order.refundKey)),
    retrieve: (order, id) =>
      Effect.suspend(() => {
        const found = objects.get(id)
        return found === undefined ? absent(order, id) : Effect.succeed(found)
      })
  }
  memoryRefunds.set(service, () => [...objects.values()])
  return service
})

const absent = (order: RefundOrder, id: string) =>
  Effect.fail(new ChargeError({
    reason: new InvalidRequest({ param: "refund", code: "resource_missing", detail: `No such refund: '${id}'` }),
    chargeKey: order.chargeKey,
    requestId: null
  }))
