/**
 * Looks for likely double charges in an account that may never have seen Purser: equal charges of one customer, close
 * together, that different requests made. It reads charges and events and touches nothing; what it finds is a suspicion
 * with its evidence, for a person to judge.
 *
 * Charges come newest first and are forgotten once they are further back than the window, so that memory holds one window.
 */
import { type AccountCharge, type AccountList, type AccountOrigin, type ChargeError, ProcessorAccount } from "@purser/core"
import { Clock, type Config, Context, Effect, Layer, Option } from "effect"
import { type AuditEvidence, type Confidence, evidenceOf, sameKey } from "./internal/auditEvidence.ts"
import { patiently } from "./internal/gatewaySteps.ts"
import { PipelineOptions } from "./PipelineOptions.ts"

export type { AuditEvidence, Confidence }

/** What to look at. Times in milliseconds of the Unix epoch. */
export interface AuditOptions {
  readonly sinceMs: number
  readonly untilMs?: number | undefined
  /** Two charges are suspect when they are no further apart. */
  readonly windowMs: number
}

/** One charge of a suspicion. */
export interface SuspectCharge {
  readonly id: string
  readonly paymentIntentId: string | null
  readonly createdMs: number
  readonly amountMinor: number
  readonly amountRefundedMinor: number
  readonly isDisputed: boolean
  readonly idempotencyKey: string | null
}

/** A charge that looks like the repetition of an earlier one. Amounts in minor units. */
export interface Suspicion {
  readonly stripeCustomerId: string
  readonly currency: string
  readonly amountMinor: number
  /** The earlier charge, which would stay. */
  readonly first: SuspectCharge
  /** The later one, which would be refunded. */
  readonly again: SuspectCharge
  readonly apartMs: number
  readonly confidence: Confidence
  readonly evidence: ReadonlyArray<AuditEvidence>
  /** What a refund would give back: what the later charge still holds; 0 when nothing is proposed. */
  readonly proposedRefundMinor: number
}

/** The result in numbers. */
export interface AuditReport {
  readonly sinceMs: number
  readonly untilMs: number
  readonly windowMs: number
  /** Charges that succeeded, and those without a customer, which cannot be compared. */
  readonly charges: number
  readonly withoutCustomer: number
  readonly suspicions: Readonly<Record<Confidence, number>>
  /** Sum of what is proposed, by currency. */
  readonly proposedMinor: Readonly<Record<string, number>>
}

/** Charges of one page that wait for their origins. */
interface Pair {
  readonly first: AccountCharge
  readonly again: AccountCharge
}

const pairsMax = 500

/** Audits. Every method needs nothing. */
export class Audit extends Context.Service<Audit, {
  /** Runs the audit; each suspicion is handed over as it is found, the newest first. */
  readonly audit: (options: AuditOptions, onSuspicion: (suspicion: Suspicion) => Effect.Effect<void>) => Effect.Effect<AuditReport, ChargeError>
}>()("@purser/engine/Audit") {
  /** Over a reader of the account; no ledger is needed. */
  static readonly layer: Layer.Layer<Audit, Config.ConfigError, ProcessorAccount> = Layer.effect(
    Audit,
    Effect.gen(function*() {
      const account = yield* ProcessorAccount
      const given = yield* Effect.serviceOption(PipelineOptions)
      const settings = Option.isSome(given) ? given.value : yield* PipelineOptions.fromConfig

      /** The requests behind these charges, as far as events tell: one walk over the events around them. */
      const originsOf = Effect.fnUntraced(function*(pairs: ReadonlyArray<Pair>): Effect.fn.Return<Map<string, AccountOrigin>, ChargeError> {
        const charges = pairs.flatMap(({ again, first }) => [again, first])
        const wanted = new Set(charges.map(({ id }) => id))
        const times = charges.map(({ createdMs }) => createdMs)
        const range = { fromMs: Math.min(...times) - 1000, toMs: Math.max(...times) + 86_400_000 }
        const found = new Map<string, AccountOrigin>()
        let after: string | undefined
        while (found.size < wanted.size) {
          const cursor = after
          const { items, next } = yield* patiently(settings, account.origins(range, cursor))
          for (const origin of items) if (wanted.has(origin.objectId)) found.set(origin.objectId, origin)
          if (next === undefined) break
          after = next
        }
        return found
      })

      const suspect = (charge: AccountCharge, origin: AccountOrigin | undefined): SuspectCharge => ({
        id: charge.id,
        paymentIntentId: charge.paymentIntentId,
        createdMs: charge.createdMs,
        amountMinor: charge.amountMinor,
        amountRefundedMinor: charge.amountRefundedMinor,
        isDisputed: charge.isDisputed,
        idempotencyKey: origin?.idempotencyKey ?? null
      })

      const audit = Effect.fnUntraced(function*(
        options: AuditOptions,
        onSuspicion: (suspicion: Suspicion) => Effect.Effect<void>
      ): Effect.fn.Return<AuditReport, ChargeError> {
        const untilMs = options.untilMs ?? (yield* Clock.currentTimeMillis)
        const range = { fromMs: options.sinceMs, toMs: untilMs }
        const counts = { charges: 0, withoutCustomer: 0 }
        const suspicions: Record<Confidence, number> = { high: 0, medium: 0, low: 0 }
        const proposedMinor: Record<string, number> = {}
        const recent = new Map<string, AccountCharge>()
        let pairs: Array<Pair> = []

        const flush = Effect.gen(function*() {
          if (pairs.length === 0) return
          const origins = yield* originsOf(pairs)
          for (const { again, first } of pairs) {
            const [firstOrigin, againOrigin] = [origins.get(first.id), origins.get(again.id)]
            const { confidence, evidence } = evidenceOf(first, again, firstOrigin, againOrigin)
            const left = again.amountMinor - again.amountRefundedMinor
            // Refunded or disputed already, on either side: the customer has the money, or is about to.
            const isSettled = left <= 0 || again.isDisputed || first.isDisputed || first.amountRefundedMinor > 0
            const proposedRefundMinor = confidence === "low" || isSettled ? 0 : left
            suspicions[confidence] += 1
            if (proposedRefundMinor > 0) proposedMinor[again.currency] = (proposedMinor[again.currency] ?? 0) + proposedRefundMinor
            yield* onSuspicion({
              stripeCustomerId: again.stripeCustomerId ?? "",
              currency: again.currency,
              amountMinor: again.amountMinor,
              first: suspect(first, firstOrigin),
              again: suspect(again, againOrigin),
              apartMs: again.createdMs - first.createdMs,
              confidence,
              evidence,
              proposedRefundMinor
            })
          }
          pairs = []
        })

        const forget = (olderThanMs: number): void => {
          // The newest stand in front; what is too new for anything that still comes goes.
          for (const [key, charge] of recent) {
            if (charge.createdMs <= olderThanMs) return
            recent.delete(key)
          }
        }

        const list: AccountList<AccountCharge> = account.charges
        let after: string | undefined
        for (;;) {
          const cursor = after
          const { items, next } = yield* patiently(settings, list(range, cursor))
          for (const charge of items) {
            if (charge.status === "failed") continue
            counts.charges += 1
            if (charge.stripeCustomerId === null) {
              counts.withoutCustomer += 1
              continue
            }
            const key = sameKey(charge)
            const later = recent.get(key)
            if (later !== undefined && later.createdMs - charge.createdMs <= options.windowMs) pairs.push({ first: charge, again: later })
            recent.delete(key)
            recent.set(key, charge)
          }
          const oldest = items.at(-1)
          if (oldest !== undefined) forget(oldest.createdMs + options.windowMs)
          if (pairs.length >= pairsMax || next === undefined) yield* flush
          if (next === undefined) return { ...range, sinceMs: options.sinceMs, untilMs, windowMs: options.windowMs, ...counts, suspicions, proposedMinor }
          after = next
        }
      })

      return Audit.of({ audit: Effect.fn("Audit.audit")(audit) })
    })
  )
}
