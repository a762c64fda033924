/**
 * Refunds in a world: operators at two places give money back, in part or whole, twice at once, through processes that die over
 * it. By the simulated Stripe's own list no refund is there twice, and none is above what is left.
 */
import { type ChargeRecord, type ChargeRequest, RefundLedger, type RefundOutcome, type RefundRecord, RefundRequest } from "@purser/core"
import { type RefundFailure, Refunds } from "@purser/engine"
import { Cause, Context, Effect, Exit } from "effect"
import type { Beside } from "./Beside.ts"
import type { RefundWish } from "./BesidePlan.ts"
import { type Engine, Office, type OfficeShared } from "./Office.ts"
import { listAt } from "./StripeDesk.ts"

interface MadeRefund {
  readonly id: string
  readonly amount: number
  readonly status: string
  readonly metadata: Readonly<Record<string, string>>
}

/** What an operator was told in the end. */
interface Told {
  readonly request: RefundRequest
  readonly said: RefundOutcome | RefundFailure
}

const sweepMs = 30_000
const roundsMax = 60

const wishOf = (charge: ChargeRequest, { percent, refundId }: RefundWish): RefundRequest =>
  new RefundRequest({
    chargeKey: charge.chargeKey,
    refundId,
    amountMinor: (percent === null ? null : Math.floor(charge.amountMinor * percent / 100)) as RefundRequest["amountMinor"],
    reason: null,
    actor: "an operator",
    note: "asked to"
  })

/** One refund of the book against those that Stripe has under its key. */
const problemsOf = ({ amountMinor, refundKey, state }: RefundRecord, made: ReadonlyArray<MadeRefund>): ReadonlyArray<string> => {
  const say = (problem: string) => [`refund ${refundKey.slice(0, 6)}: ${problem}`]
  if (made.length > 1) return say(`made ${made.length} times`)
  const [one] = made
  if (state === "requested") return say("still open long after the last fault")
  if (one !== undefined && one.amount !== amountMinor) return say(`${one.amount} went back where ${amountMinor} was asked`)
  const isRecorded = state === "succeeded" || state === "pending"
  if (isRecorded !== (one !== undefined)) return say(`recorded as ${state}, and Stripe has ${one === undefined ? "none" : one.id}`)
  // Nobody but these operators gives anything back here, so that nothing they may ask for can be refused.
  return isRecorded ? [] : say(`recorded as ${state}`)
}

const sumOf = (made: ReadonlyArray<{ readonly amount: number }>) => made.reduce((sum, { amount }) => sum + amount, 0)

const paidMinor = ({ outcome }: ChargeRecord) => outcome?._tag === "Succeeded" ? outcome.amountReceivedMinor : 0

/** Two offices that refund, and what operators want of them. */
export const makeRefunding = Effect.fnUntraced(function*(shared: OfficeShared, wishes: ReadonlyArray<RefundWish>) {
  const { books, ledger, mutant, requests, sim, storm, tools } = shared
  const book = Context.get(books, RefundLedger)
  const engine = (built: Context.Context<Engine>) => mutant?.refunding?.(built, tools) ?? built
  const sweeps = (services: Context.Context<Refunds>) =>
    Effect.forever(Effect.andThen(Effect.ignore(Context.get(services, Refunds).sweepOnce), Effect.sleep(sweepMs)))
  const offices = ["refunds-0", "refunds-1"].map((name): Office<Refunds> => new Office(name, shared, { layer: Refunds.layer, run: sweeps, engine }))
  const told: Array<Told> = []

  /** Asks until something definitive is said, also of a charge that is not paid yet. */
  const operate = Effect.fnUntraced(function*(wish: RefundWish) {
    const request = wishOf(requests[wish.charge]!, wish)
    for (let round = 1; round <= roundsMax; round++) {
      const exit = yield* offices[wish.office]!.ask((services) => Context.get(services, Refunds).refund(request))
      if (exit !== undefined && Exit.isSuccess(exit)) return void told.push({ request, said: exit.value })
      const failure = exit?.cause.reasons.find(Cause.isFailReason)?.error
      storm.tell("an operator", `asks for refund ${request.refundId} of ${request.chargeKey.slice(0, 6)}`, failure?.message ?? "no answer")
      if (failure?.reason._tag === "RefundTooLarge" || failure?.reason._tag === "RefundConflict") return void told.push({ request, said: failure })
      yield* Effect.sleep(60_000)
    }
  })

  const openOf = Effect.map(Effect.forEach(requests, ({ chargeKey }) => book.list(chargeKey)), (lists) =>
    lists.flat().filter(({ state }) => state === "requested" || state === "pending")).pipe(Effect.orDie)

  return {
    offices,
    start: Effect.gen(function*() {
      yield* Effect.forEach(offices, (office) => office.prepare())
      offices.forEach((office) => office.start())
      yield* Effect.forEach(wishes, (wish) => Effect.forkChild(Effect.delay(operate(wish), wish.atMs)))
    }),
    isAtRest: Effect.map(openOf, (open) => open.length === 0),
    judge: Effect.gen(function*() {
      const problems: Array<string> = []
      const isAlive = ({ status }: MadeRefund) => status !== "failed" && status !== "canceled"
      const made = Map.groupBy((yield* listAt<MadeRefund>(sim, "/v1/refunds")).filter(isAlive), ({ metadata }) => metadata["refund_key"] ?? "")
      const known = new Set<string>()
      for (const { chargeKey } of requests) {
        const record = yield* Effect.orDie(ledger.find(chargeKey))
        const refunds = yield* Effect.orDie(book.list(chargeKey))
        for (const refund of refunds) {
          known.add(refund.refundKey)
          problems.push(...problemsOf(refund, made.get(refund.refundKey) ?? []))
        }
        const paid = record === undefined ? 0 : paidMinor(record)
        const bound = refunds.filter(({ state }) => state !== "failed" && state !== "refused").reduce((sum, { amountMinor }) => sum + amountMinor, 0)
        const back = sumOf(refunds.flatMap(({ refundKey }) => made.get(refundKey) ?? []))
        if (back > paid || bound > paid) problems.push(`${back} of ${paid} went back, and ${bound} is recorded (${chargeKey.slice(0, 6)})`)
        for (const { request, said } of told) {
          if (request.chargeKey !== chargeKey) continue
          const own = made.get(request.refundKey) ?? []
          if (said._tag === "Refunded" && own.length === 0) problems.push(`an operator was told that ${request.refundId} went back, and it did not`)
          if (said._tag === "RefundError" && said.reason._tag === "RefundTooLarge" && (request.amountMinor ?? 1) <= paid - bound) {
            problems.push(`an operator was told that ${request.amountMinor} is too much, of ${paid} less ${bound}`)
          }
        }
      }
      for (const key of made.keys()) if (!known.has(key)) problems.push(`Stripe has a refund ${key} that nobody knows`)
      const refused = (yield* sim.requests).filter(({ method, path, status }) => method === "POST" && path === "/v1/refunds" && status === 400)
      if (refused.length > 0) problems.push(`Stripe had to refuse ${refused.length} refunds`)
      return problems
    })
  } satisfies Beside
})
