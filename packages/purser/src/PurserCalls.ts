/** What the object for plain programs can do, as Effects over the services of the app: one table, from which its promises are made. */
import {
  type CapReport, ChargePause, type ChargeOutcome, type ChargeState, chargeTerms, defaultHeadroomPercent, defaultNamespace, DunningBook, type DunningView, firstRefundId, Ledger,
  type Pause, type RebillAnswer, RefundLedger, type RefundOutcome, RefundRequest, SpendCap
} from "@purser/core"
import { ChargePipeline, isRetryableState, retryCharge, Refunds } from "@purser/engine"
import { Effect } from "effect"
import { type MinorUnits, plain, type Plain } from "./internal/plain.ts"
import { type CapFailure, type ChargeFailure, type GiveBackFailure, InvalidInput, type StatusFailure, type StoreFailure } from "./PurserError.ts"
import {
  type ActInput, type CapInput, type ChargeInput, type ChargeName, decoding, type DunningInput, type NewCardInput, onlyFieldsOf, type PeriodLabels, readAct, readAmount, readCharge,
  readCurrency, readName, readPeriod, readTexts, readTotal, type RebillRequest, type RefundInput, type RetryInput
} from "./PurserInput.ts"

/** What came of a billing anew: why no revision was opened, or the revision and the outcome of its charge. */
export type RebillResult =
  | Exclude<RebillAnswer, { readonly _tag: "Opened" } | { readonly _tag: "Present" }>
  | { readonly _tag: "Billed"; readonly revision: number; readonly revises: string; readonly outcome: ChargeOutcome }

/** What came of another attempt: its outcome, or why there was none. `state` is null for a charge that the ledger does not know. */
export type RetryResult =
  | { readonly _tag: "Retried"; readonly outcome: ChargeOutcome }
  | { readonly _tag: "NotRetried"; readonly state: ChargeState | null }

/** One charge as the ledger has it. */
export interface ChargeStatus {
  readonly chargeKey: string
  readonly state: ChargeState
  readonly attempt: number
  readonly amountMinor: number
  readonly currency: string
  readonly outcome: ChargeOutcome | null
  readonly quarantine: string | null
  /** When policy asks again after a decline, in milliseconds of the Unix epoch. */
  readonly nextAttemptAtMs: number | null
}

/** Counts and sums of one state; amounts in minor units. */
export interface StateCount {
  readonly billingPeriod: string
  readonly currency: string
  readonly state: ChargeState
  readonly charges: number
  readonly amountMinor: MinorUnits
  readonly receivedMinor: MinorUnits
  readonly quarantined: number
}

/** A cap, as JSON can hold it. */
export type CapStatus = Plain<CapReport>

/** How the ledger stands. */
export interface PurserStatus {
  /** Pauses in force; charging rests while there are any. */
  readonly pauses: ReadonlyArray<Pause>
  readonly charges: ReadonlyArray<StateCount>
  readonly caps: ReadonlyArray<CapStatus>
}

/** A dunning case, and how its charge stands. */
export type DunningStatus = DunningView["case"] & { readonly charge: ChargeStatus }

/** What came of opening a case: the case that is open now, or why there is none. */
export type DunningStarted =
  | { readonly _tag: "Opened" | "Present"; readonly case: DunningView["case"] }
  | { readonly _tag: "NotDeclined"; readonly state: ChargeState | null }

type Calls = ChargePipeline | ChargePause | DunningBook | Ledger | RefundLedger | Refunds | SpendCap

const casesMax = 1_000_000
const actor = (input: { readonly actor?: string }) => input.actor ?? "program"
const decodeRefund = decoding(RefundRequest)

const statusOf = ({ attempt, chargeKey, nextAttemptAtMs, outcome, quarantine, request, state }: DunningView["record"]): ChargeStatus => {
  const { amountMinor, currency } = chargeTerms(request)
  return { chargeKey, state, attempt, amountMinor, currency, outcome, quarantine, nextAttemptAtMs }
}

/** The calls, with the services of the app in them. */
export const makeCalls = Effect.fnUntraced(function*(labels: PeriodLabels) {
  const services = yield* Effect.context<Calls>()
  const call = <I extends ReadonlyArray<unknown>, A, E>(make: (...input: I) => Effect.Effect<A, E, Calls>) => (...input: I): Effect.Effect<A, E> =>
    Effect.provideContext(make(...input), services)

  const pausing = (act: "pause" | "resume") =>
    call(Effect.fnUntraced(function*(input: ActInput): Effect.fn.Return<boolean, StoreFailure, Calls> {
      yield* onlyFieldsOf.act(input)
      yield* readAct(input)
      return yield* (yield* ChargePause)[act]({ cause: "person", actor: actor(input), reason: input.reason })
    }))

  return {
    charge: call(Effect.fnUntraced(function*(input: ChargeInput): Effect.fn.Return<ChargeOutcome, ChargeFailure, Calls> {
      const request = yield* readCharge(input, labels)
      return yield* (yield* ChargePipeline).charge(request)
    })),
    find: call(Effect.fnUntraced(function*(input: ChargeName): Effect.fn.Return<ChargeStatus | undefined, StoreFailure, Calls> {
      const record = yield* (yield* Ledger).find(yield* readName(input, labels))
      return record === undefined ? undefined : statusOf(record)
    })),
    retry: call(Effect.fnUntraced(function*(input: RetryInput): Effect.fn.Return<RetryResult, ChargeFailure, Calls> {
      yield* onlyFieldsOf.retry(input)
      yield* readAct(input)
      const record = yield* (yield* Ledger).find(yield* readName(input, labels))
      if (record === undefined || !isRetryableState(record.state)) return { _tag: "NotRetried", state: record?.state ?? null }
      const outcome = yield* retryCharge(record, { actor: actor(input), reason: input.reason, paymentMethod: input.paymentMethod })
      return outcome === undefined ? { _tag: "NotRetried", state: "claimed" } : { _tag: "Retried", outcome }
    })),
    openCap: call(Effect.fnUntraced(function*(input: CapInput): Effect.fn.Return<CapStatus, CapFailure, Calls> {
      yield* onlyFieldsOf.cap(input)
      const scope = { namespace: input.namespace ?? defaultNamespace, billingPeriod: yield* readPeriod(input.billingPeriod, labels), currency: yield* readCurrency(input.currency) }
      const opened = yield* (yield* SpendCap).open({ ...scope, expectedMinor: yield* readTotal(input.expectedMinor), headroomPercent: input.headroomPercent ?? defaultHeadroomPercent })
      // Cases that found none look again at once, or by themselves where this cannot be said.
      yield* Effect.ignore((yield* DunningBook).roomMade(scope), { log: "Warn", message: "dunning cases that wait for room look again by themselves, and not at once" })
      return plain(opened)
    })),
    refund: call(Effect.fnUntraced(function*(input: RefundInput): Effect.fn.Return<RefundOutcome, GiveBackFailure, Calls> {
      yield* onlyFieldsOf.refund(input)
      yield* readAct(input)
      return yield* (yield* Refunds).refund(yield* decodeRefund({
        chargeKey: yield* readName(input, labels),
        refundId: input.refundId ?? firstRefundId,
        amountMinor: input.amountMinor ?? null,
        reason: input.cause ?? null,
        actor: actor(input),
        note: input.reason,
        again: input.again === true
      }))
    })),
    rebill: call(Effect.fnUntraced(function*(input: RebillRequest): Effect.fn.Return<RebillResult, ChargeFailure, Calls> {
      yield* onlyFieldsOf.rebill(input)
      yield* readAct(input)
      const { amountMinor, paymentMethod, reason, stripeCustomerId, unrefunded } = input
      const answer = yield* (yield* RefundLedger).rebill({
        chargeKey: yield* readName(input, labels),
        amountMinor: yield* readAmount(amountMinor),
        actor: actor(input),
        reason,
        unrefunded: unrefunded === true,
        ...(stripeCustomerId === undefined ? {} : { stripeCustomerId }),
        ...(paymentMethod === undefined ? {} : { paymentMethod })
      })
      if (answer._tag !== "Opened" && answer._tag !== "Present") return answer
      const outcome = yield* (yield* ChargePipeline).charge(answer.request)
      return { _tag: "Billed", revision: answer.request.revision ?? 0, revises: answer.revises, outcome }
    })),
    pause: pausing("pause"),
    resume: pausing("resume"),
    status: call(Effect.fnUntraced(function*(input?: { readonly billingPeriod?: string }): Effect.fn.Return<PurserStatus, StatusFailure, Calls> {
      const period = input?.billingPeriod === undefined ? undefined : yield* readPeriod(input.billingPeriod, labels)
      return {
        pauses: yield* (yield* ChargePause).inForce,
        charges: (yield* (yield* Ledger).report(period)).map(plain),
        caps: (yield* (yield* SpendCap).report(period)).map(plain)
      }
    })),
    startDunning: call(Effect.fnUntraced(function*(input: DunningInput): Effect.fn.Return<DunningStarted, StoreFailure, Calls> {
      yield* onlyFieldsOf.dunning(input)
      yield* readAct(input)
      return yield* (yield* DunningBook).open(yield* readName(input, labels), { actor: actor(input), reason: input.reason })
    })),
    cancelDunning: call(Effect.fnUntraced(function*(input: DunningInput): Effect.fn.Return<boolean, StoreFailure, Calls> {
      yield* onlyFieldsOf.dunning(input)
      yield* readAct(input)
      const book = yield* DunningBook
      const open = (yield* book.casesOf(yield* readName(input, labels))).find((view) => view.case.state === "open")
      return open !== undefined && (yield* book.close(open.case.caseId, "canceled", { actor: actor(input), reason: input.reason }))
    })),
    newCard: call(Effect.fnUntraced(function*(input: NewCardInput): Effect.fn.Return<number, StoreFailure, Calls> {
      yield* onlyFieldsOf.newCard(input)
      yield* readAct(input)
      yield* readTexts({ stripeCustomerId: input.stripeCustomerId }, { paymentMethod: input.paymentMethod })
      return yield* (yield* DunningBook).offer(input.stripeCustomerId, input.paymentMethod ?? null, { actor: actor(input), reason: input.reason })
    })),
    dunningCases: call(Effect.fnUntraced(function*(input?: { readonly all?: boolean; readonly limit?: number }): Effect.fn.Return<ReadonlyArray<DunningStatus>, StoreFailure, Calls> {
      const limit = input?.limit ?? 100
      if (!Number.isSafeInteger(limit) || limit < 1 || limit > casesMax) return yield* new InvalidInput({ detail: `limit must be a whole number from 1 to ${casesMax}` })
      const views = yield* (yield* DunningBook).list({ onlyOpen: input?.all !== true, limit })
      return views.map((view) => ({ ...view.case, charge: statusOf(view.record) }))
    }))
  }
})
