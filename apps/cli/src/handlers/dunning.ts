/** `purser dunning`: the book of cases, read and written; who asks again is a runner. */
import { type ChargeIdentity, chargeKeyOf, DunningBook, type DunningView, Money } from "@purser/core"
import { Stores } from "@purser/purser"
import { Effect } from "effect"
import { refused } from "../CommandFailed.ts"
import { note, out } from "../ui/Output.ts"
import { table } from "../ui/table.ts"

interface Act {
  readonly actor: string
  readonly reason: string
  readonly json: boolean
}

const at = (ms: number | null) => ms === null ? "" : new Date(ms).toISOString()

/** A case as a line of JSON: what it says, and how its charge stands. */
const plain = ({ case: one, offered, record }: DunningView) => ({
  ...one,
  customerId: record.request.customerId,
  billingPeriod: record.request.billingPeriod,
  item: record.request.item ?? null,
  amountMinor: record.request.amountMinor,
  currency: record.request.currency,
  charge: { state: record.state, attempt: record.attempt, nextAttemptAtMs: record.nextAttemptAtMs },
  offered
})

const waitsFor = (view: DunningView): string => {
  const { detail, state } = view.case
  return state !== "open" ? detail ?? "" : detail === null ? next(view) : `${next(view)}; waits: ${detail}`
}
const next = ({ offered, record }: DunningView): string => {
  if (offered !== null) return `tries ${offered.paymentMethod ?? "the new default method"}`
  if (record.state === "declined" || record.state === "requires_action") {
    return record.nextAttemptAtMs === null ? "waits for a new card, then gives up" : `asks as attempt ${record.attempt + 1}`
  }
  return `the charge is ${record.state}`
}

const print = (views: ReadonlyArray<DunningView>, json: boolean) => {
  if (json) return out(JSON.stringify(views.map(plain)))
  if (views.length === 0) return out("no cases")
  return out(table(["case", "customer", "period", "item", "amount", "attempt", "state", "goes on at", "what"], views.map((view) => {
    const { case: one, record: { attempt, request } } = view
    return [
      one.caseId, request.customerId, request.billingPeriod, request.item ?? "", `${Money.formatMinor(request.amountMinor, request.currency)} ${request.currency}`,
      String(attempt), one.state, at(one.goesOnAtMs ?? one.closedAtMs), waitsFor(view)
    ]
  }), [4, 5]))
}

const withBook = <A, E>(use: (book: DunningBook["Service"]) => Effect.Effect<A, E>) =>
  Effect.flatMap(DunningBook, use).pipe(Effect.provide(Stores.layerConfig))

/** Prints open cases, or all. */
export const list = (options: { readonly all: boolean; readonly limit: number; readonly json: boolean }) =>
  withBook((book) => Effect.flatMap(book.list({ onlyOpen: !options.all, limit: options.limit }), (views) => print(views, options.json)))

/** Prints the cases of one charge. */
export const show = (identity: ChargeIdentity, json: boolean) =>
  withBook((book) => Effect.flatMap(book.casesOf(chargeKeyOf(identity)), (views) => print(views, json)))

/** Opens a case. */
export const start = (identity: ChargeIdentity, { actor, json, reason }: Act) =>
  withBook(Effect.fnUntraced(function*(book) {
    const chargeKey = chargeKeyOf(identity)
    const answer = yield* book.open(chargeKey, { actor, reason })
    if (answer._tag === "NotDeclined") {
      return yield* refused(answer.state === null
        ? "the ledger holds no such charge"
        : `the charge is ${answer.state}: only a declined one, that is not quarantined, is followed up`)
    }
    if (answer._tag === "Present") yield* note("its case was open before; that one stands")
    else yield* note("a runner takes it up (purser runner)")
    yield* print((yield* book.casesOf(chargeKey)).slice(0, 1), json)
  }))

/** Ends a case. */
export const cancel = (identity: ChargeIdentity, { actor, json, reason }: Act) =>
  withBook(Effect.fnUntraced(function*(book) {
    const chargeKey = chargeKeyOf(identity)
    const open = (yield* book.casesOf(chargeKey)).find((view) => view.case.state === "open")
    if (open === undefined || !(yield* book.close(open.case.caseId, "canceled", { actor, reason }))) {
      return yield* refused("the charge has no open case")
    }
    if (open.record.state !== "declined") yield* note(`an attempt is under way: the charge is ${open.record.state}, and this attempt goes on to its end`)
    yield* print((yield* book.casesOf(chargeKey)).slice(0, 1), json)
  }))

/** Offers a new card. */
export const card = (stripeCustomerId: string, paymentMethod: string | undefined, { actor, json, reason }: Act) =>
  withBook(Effect.fnUntraced(function*(book) {
    const cases = yield* book.offer(stripeCustomerId, paymentMethod ?? null, { actor, reason })
    if (cases === 0) {
      return yield* refused(paymentMethod === undefined
        ? `${stripeCustomerId} has no open case whose charge names no method: name the new one with --payment-method, if it is another one`
        : `${stripeCustomerId} has no open case`)
    }
    if (json) return yield* out(JSON.stringify({ cases }))
    yield* out(`${cases} open ${cases === 1 ? "case tries" : "cases try"} it at once, where a runner is there`)
  }))
