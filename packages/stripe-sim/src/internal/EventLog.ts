/**
 * The events of an account: what changed, as the object was at that moment.
 *
 * Defines how long an event is kept (30 days on the virtual clock, and no more of them than a limit). Refuses to hold
 * texts: an event is a closure over an immutable record until someone reads it.
 */
import type Stripe from "stripe"
import type { WireInvoice, WireItem } from "./renderInvoice.ts"

type Travels<O> = O extends Stripe.Invoice ? WireInvoice : O extends Stripe.InvoiceItem ? WireItem : O

/** The object that an event of this type carries, by the SDK's own table. */
export type ObjectOf<T extends Stripe.Event.Type> = Travels<Extract<Stripe.Event, { readonly type: T }>["data"]["object"]>

/** An event. */
export interface EventRecord {
  readonly id: string
  readonly seq: number
  readonly createdS: number
  readonly type: Stripe.Event.Type
  readonly show: () => Stripe.Event.Data.Object
  readonly requestId: string | null
  readonly idempotencyKey: string | null
  /** `acct_…` of a connected account. */
  readonly account: string | null
  /** Endpoints that have not taken it yet. */
  pendingWebhooks: number
}

/** An event as it travels; the SDK's union of all types has these members in common. */
export type WireEvent = Omit<Stripe.Event, "data" | "type"> & {
  readonly type: Stripe.Event.Type
  readonly data: Stripe.Event.Data
}

/** An event as Stripe shows it. */
export const shape = (event: EventRecord): WireEvent => ({
  id: event.id,
  object: "event",
  ...(event.account === null ? {} : { account: event.account }),
  api_version: "2026-10-28.endive",
  created: event.createdS,
  data: { object: event.show() },
  livemode: false,
  pending_webhooks: event.pendingWebhooks,
  request: { id: event.requestId, idempotency_key: event.idempotencyKey },
  type: event.type
})

const keptS = 30 * 24 * 60 * 60

/** The events, oldest first inside. */
export class EventLog {
  readonly inOrder = true
  private readonly byId = new Map<string, EventRecord>()
  private order: Array<EventRecord> = []
  private readonly limit: number
  private readonly nowS: () => number
  private count = 0

  constructor(limit: number, nowS: () => number) {
    this.limit = limit
    this.nowS = nowS
  }
  get nextSeq(): number {
    return this.count
  }
  put(event: EventRecord): void {
    this.count++
    this.byId.set(event.id, event)
    this.order.push(event)
    // Dropping in halves keeps the cost of the limit out of the ordinary event.
    if (this.order.length < this.limit * 2) return
    for (const old of this.order.slice(0, -this.limit)) this.byId.delete(old.id)
    this.order = this.order.slice(-this.limit)
  }
  get(id: string): EventRecord | undefined {
    const event = this.byId.get(id)
    return event !== undefined && event.createdS >= this.nowS() - keptS ? event : undefined
  }
  *newestFirst(_group?: string, belowSeq = Infinity): Generator<EventRecord> {
    const oldestS = this.nowS() - keptS
    const first = this.order[0]?.seq ?? 0
    for (let at = Math.min(this.order.length, belowSeq - first) - 1; at >= 0; at--) {
      const event = this.order[at]
      if (event === undefined || event.createdS < oldestS) return
      yield event
    }
  }
}
