/**
 * The statements that look for charges. Each walks one index from a place on, and looks at no more than `budget` rows:
 * what does not fit costs a bounded time, and the search goes on with the next page.
 */
import type { ChargePlace, ChargeQuery } from "@purser/core"
import { keyIn } from "./eventPages.ts"
import { chargesWithLease } from "./leasePages.ts"
import { integer, text } from "./params.ts"

const epochMs = (column: string) => `(extract(epoch from ${column}) * 1000)::float8`

/** The columns of a line of a list; `c` is the charge. */
export const lineColumns = `c.charge_key, c.namespace, c.customer_id, c.billing_period, c.item, c.revision, c.amount_minor, c.received_minor, c.currency,
  c.stripe_customer_id, c.state, c.attempt, coalesce(c.outcome_payment_intent_id, c.payment_intent_id) as payment_intent_id, c.quarantine,
  c.outcome_detail as detail, ${epochMs("c.updated_at")} as updated_at_ms`

/** What a place is read from. */
const order = { period: "c.billing_period desc, c.planned_at desc, c.charge_key desc", customer: `c.customer_id collate "C", c.billing_period, c.charge_key` } as const

/** A statement with its parameters. */
export interface SearchStatement {
  readonly sql: string
  readonly params: ReadonlyArray<unknown>
}

/** The largest code point: a prefix and this is above everything that begins with the prefix. */
const highest = "\u{10FFFF}"
const inWork: ReadonlySet<string> = new Set(["claimed", "attached", "processing"])
const unpaid: ReadonlySet<string> = new Set(["declined", "rejected", "canceled", "requires_action"])

interface Range {
  /** Which rows are walked, and in which order. */
  readonly from: string
  readonly order: string
  /** What they must satisfy beside; a parameter is named when its condition is. */
  readonly filters: ReadonlyArray<() => string>
}

type Name = (value: unknown) => string

const numbered = () => {
  const params: Array<unknown> = []
  const name: Name = (value) => `$${params.push(value)}`
  return { params, name }
}

/** The walk, and what is left to be filtered. */
const rangeOf = (query: ChargeQuery, after: ChargePlace | null, name: Name): Range => {
  const { billingPeriod, state: wanted } = query
  const period = billingPeriod === undefined ? [] : [() => `c.billing_period = ${name(text(billingPeriod))}::text`]
  const state = wanted === undefined
    ? []
    : [() => wanted === "quarantined" ? "c.quarantine is not null" : `c.state = ${name(text(wanted))}::text`]
  const where = (...conditions: ReadonlyArray<() => string>) => conditions.length === 0 ? "" : ` where ${conditions.map((condition) => condition()).join(" and ")}`
  if (query.customer !== undefined) {
    const { text: id, whole } = query.customer
    const customer = () => {
      const begins = `${name(text(id))}::text`
      return whole ? `c.customer_id collate "C" = ${begins}` : `c.customer_id collate "C" >= ${begins} and c.customer_id collate "C" < ${name(text(id + highest))}::text`
    }
    const place = after === null ? [] : [() =>
      `(c.customer_id collate "C", c.billing_period, c.charge_key) > (${name(text(after.customerId))}::text, ${name(text(after.billingPeriod))}::text, ${name(text(after.chargeKey))}::text)`]
    return { from: `purser.charges c${where(customer, ...place)}`, order: order.customer, filters: [...period, ...state] }
  }
  const place = after === null ? [] : [() => {
    const key = `${name(text(after.chargeKey))}::text`
    return `(c.billing_period, c.planned_at, c.charge_key) < (${name(text(after.billingPeriod))}::text, (select planned_at from purser.charges where charge_key = ${key}), ${key})`
  }]
  if (wanted === "quarantined" || (wanted !== undefined && inWork.has(wanted))) {
    // There are few of them, whatever the size of the ledger: they are read where they are listed and put into order.
    const few = wanted === "quarantined" ? "(select * from purser.charges q where q.quarantine is not null offset 0)" : chargesWithLease()
    return { from: `${few} c${where(...state, ...period, ...place)}`, order: order.period, filters: [] }
  }
  // Together with their index these are the rows of the state, and few others.
  const settled = wanted !== undefined && unpaid.has(wanted) ? [() => "c.unpaid"] : []
  return { from: `purser.charges c${where(...settled, ...period, ...place)}`, order: order.period, filters: state }
}

/** The one charge, or in a ledger that was put together from two the few charges, that a payment object was made or found for. */
export const findObject = (id: string, limit: number): SearchStatement => ({
  sql: `select ${lineColumns} from purser.charges c where c.charge_key = any(array(
      select o.charge_key from purser.charge_objects o where o.object = $1::text
      union select q.charge_key from purser.charges q where q.charge_key = ${keyIn("$1::text")} and ($1::text in (q.payment_intent_id, q.outcome_payment_intent_id)
        or exists (select 1 from purser.events_of(q.charge_key) v where v.to_state = 'attached' and v.detail = $1::text))))
    order by charge_key limit $2::integer`,
  params: [text(id), integer(limit)]
})

/** Whether every row of the walk fits. */
export const isPlain = (query: ChargeQuery): boolean => rangeOf(query, null, numbered().name).filters.length === 0

/** A page of the search: up to `limit` rows that fit, of the next `budget` rows. */
export const find = (query: ChargeQuery, after: ChargePlace | null, limit: number, budget: number): SearchStatement => {
  const { name, params } = numbered()
  const { filters, from, order } = rangeOf(query, after, name)
  const walk = `(select c.* from ${from} order by ${order} limit ${name(integer(filters.length === 0 ? limit : budget))}::integer) c`
  const fits = filters.length === 0 ? "" : ` where ${filters.map((filter) => filter()).join(" and ")}`
  return { sql: `select ${lineColumns} from ${walk}${fits} order by ${order} limit ${name(integer(limit))}::integer`, params }
}

/** The place of the last row that `find` looked at when it looked at `budget` rows; none when there were fewer. */
export const place = (query: ChargeQuery, after: ChargePlace | null, budget: number): SearchStatement => {
  const { name, params } = numbered()
  const { from, order } = rangeOf(query, after, name)
  return { sql: `select c.customer_id, c.billing_period, c.charge_key from ${from} order by ${order} offset ${name(integer(budget - 1))}::integer limit 1`, params }
}
