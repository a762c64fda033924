/**
 * Webhook events from the first byte to the ledger: verified, kept, answered for, and dealt with one by one.
 *
 * Receiving and dealing are apart: an event is answered for as soon as it is kept, and any process that has this service
 * deals with it, again and again until it is done. What an event says is a hint; the object itself is read.
 */
import {
  type AccountIdentity, accountIdentity, type AccountReader, type AccountReversal, chargeAsPayment, ChargeGateway, type DueEvent, DunningBook, type Ledger, type LedgerError, type PipelineError,
  Money, ProcessorAccount, type RefundKey, Sightings, type SpendCap, type WebhookEvent, WebhookInbox, type WebhookRefused, WebhookSource
} from "@purser/core"
import { Config, Context, Duration, Effect, Layer, Metric, Option, Queue, Random, Result } from "effect"
import { ChargePipeline } from "./ChargePipeline.ts"
import { EngineMetrics } from "./EngineMetrics.ts"
import { heedingRate } from "./internal/backoff.ts"
import { boundedInt } from "./internal/boundedInt.ts"
import { makeObserve, type Observation } from "./internal/observe.ts"
import { makeNoteReversal } from "./internal/reversals.ts"
import { PipelineOptions } from "./PipelineOptions.ts"
import { Refunds, type RefundFailure } from "./Refunds.ts"

/** What a call is answered with. `fresh` is false for an event that had come before. */
export interface WebhookReceipt {
  readonly eventId: string
  readonly fresh: boolean
}

/** What one pass over the inbox did. `postponed` events failed for now and are due again later. */
export interface WebhookPass {
  readonly done: number
  readonly postponed: number
}

const options = Config.all({
  interval: Config.Duration("PURSER_WEBHOOK_INTERVAL").pipe(Config.withDefault(Duration.seconds(5))),
  concurrency: boundedInt("PURSER_WEBHOOK_CONCURRENCY", { minimum: 1, maximum: 1000, default: 16 }),
  keep: Config.Duration("PURSER_WEBHOOK_KEEP").pipe(Config.withDefault(Duration.days(90)))
})

const batch = 100
const holdMs = 60_000
const backoffMaxMs = 3_600_000
const said = (verdict: Observation["verdict"], detail: string | null = null): Observation => ({ verdict, detail })
const foreign = said("ignored", "another program's, in a connected account")

/** Events in, facts out. Every method needs nothing. */
export class Webhooks extends Context.Service<Webhooks, {
  /** Verifies the bytes as they came and keeps the event. Only when this succeeds may the call be answered with 200. */
  readonly receive: (body: Uint8Array, signature: string | undefined) => Effect.Effect<WebhookReceipt, WebhookRefused | LedgerError>
  /** Deals with all that is due now. */
  readonly settleDue: Effect.Effect<WebhookPass, LedgerError>
  /** Deals with events as they come, for ever; a failure is logged and tried again. */
  readonly run: Effect.Effect<never>
}>()("@purser/engine/Webhooks") {
  /** Over the pipeline that the app provides. */
  static readonly layerNoDeps: Layer.Layer<
    Webhooks,
    Config.ConfigError,
    WebhookSource | WebhookInbox | Sightings | ProcessorAccount | Ledger | ChargeGateway | ChargePipeline
  > = Layer.effect(
    Webhooks,
    Effect.gen(function*() {
      const source = yield* WebhookSource
      const inbox = yield* WebhookInbox
      const sightings = yield* Sightings
      const account = yield* ProcessorAccount
      const { concurrency, interval, keep } = yield* options
      const given = yield* Effect.serviceOption(PipelineOptions)
      const settings = Option.isSome(given) ? given.value : yield* PipelineOptions.fromConfig
      const observe = yield* makeObserve(`${settings.worker}/webhooks`, settings)
      // An event needs several reads. One that begins anew whenever a read comes too soon may never come to its end.
      const heed = heedingRate(settings)
      const noteReversal = yield* makeNoteReversal
      const refunds = yield* Effect.serviceOption(Refunds)
      const dunning = yield* Effect.serviceOption(DunningBook)
      const gateway = yield* ChargeGateway
      const arrived = yield* Queue.sliding<void>(1)

      const missing = (id: string) =>
        Effect.as(
          sightings.list({
            id, reason: "missing_there", chargeKey: null, amountMinor: null, currency: null, stripeCustomerId: null, status: null,
            detail: "an event named it, and the processor does not know it"
          }),
          said("unknown_object", `${id} does not exist at the processor`)
        )

      /** What an event of one account is about. Reads go to that account, and its objects count by the namespace that names it. */
      const dealIn = (
        account: AccountReader,
        isOurs: (identity: AccountIdentity | null) => boolean,
        absent: (id: string) => Effect.Effect<Observation, LedgerError>
      ) => {
        /** The payment, or the invoice behind it, which is what bears our metadata. */
        const paymentOf = Effect.fnUntraced(function*(id: string) {
          const payment = yield* heed(account.payment(id))
          if (payment === undefined || payment.identity !== null || !id.startsWith("pi_")) return payment
          // A key that may not read invoices has made none.
          const invoice = heed(account.invoiceOf(id)).pipe(
            Effect.catchIf((error) => error.reason._tag === "PermissionDenied", () => Effect.succeed(undefined))
          )
          return (yield* invoice) ?? payment
        })

        /** The identity behind a charge or a reversal: in the payment's metadata, or in the charge's where it stands alone. */
        const payerOf = Effect.fnUntraced(function*(paymentIntentId: string | null, chargeId: string | null) {
          if (paymentIntentId !== null) return (yield* paymentOf(paymentIntentId))?.identity ?? null
          return chargeId === null ? null : accountIdentity((yield* heed(account.charge(chargeId)))?.metadata)
        })

        const note = Effect.fnUntraced(function*(reversal: AccountReversal, payer: AccountIdentity | null): Effect.fn.Return<Observation, PipelineError | RefundFailure> {
          const { amountMinor, currency, kind, metadata, status } = reversal
          if (!isOurs(payer)) return foreign
          const detail = `${kind} of ${Money.text(amountMinor, currency)}: ${status}`
          switch (yield* noteReversal(reversal, payer?.chargeKey)) {
            case "noted":
              return said("noted", detail)
            case "foreign":
              return said("unknown_object", detail)
            case "ours":
              // The book of refunds reads it anew by itself; a book that failed is a reason to come again.
              yield* Option.isSome(refunds) ? refunds.value.recheck(metadata["refund_key"] as RefundKey) : Effect.void
              return said("settled", detail)
          }
        })

        const reversalOf = Effect.fnUntraced(function*(kind: AccountReversal["kind"], id: string): Effect.fn.Return<Observation, PipelineError | RefundFailure> {
          const reversal = yield* heed(account.reversal(kind, id))
          if (reversal === undefined) return yield* absent(id)
          return yield* note(reversal, yield* payerOf(reversal.paymentIntentId, reversal.chargeId))
        })

        const payment = Effect.fnUntraced(function*(id: string): Effect.fn.Return<Observation, PipelineError | RefundFailure> {
          const seen = yield* paymentOf(id)
          if (seen === undefined) return yield* absent(id)
          return isOurs(seen.identity) ? yield* observe(seen) : foreign
        })

        const charge = Effect.fnUntraced(function*(id: string): Effect.fn.Return<Observation, PipelineError | RefundFailure> {
          const charge = yield* heed(account.charge(id))
          if (charge === undefined) return yield* absent(id)
          const payment = charge.paymentIntentId === null ? undefined : yield* paymentOf(charge.paymentIntentId)
          const seen = payment ?? chargeAsPayment(charge)
          if (!isOurs(seen.identity)) return foreign
          const observed = yield* observe(seen)
          if (charge.amountRefundedMinor === 0) return observed
          const refunds = yield* heed(account.refundsOf(id))
          const noted = yield* Effect.forEach(refunds, (refund) => note(refund, seen.identity))
          return observed.verdict === "unchanged" || observed.verdict === "in_work" ? noted.at(-1) ?? observed : observed
        })
        return { payment, charge, reversal: reversalOf }
      }

      const own = dealIn(account, () => true, missing)
      /** A connected account has other programs' objects, which come and go: only what bears a namespace that names it is ours. */
      const connected = (id: string) =>
        dealIn(account.at(id), (identity) => identity?.namespace != null && account.accountOf(identity.namespace) === id, () => Effect.succeed(foreign))

      /** A customer has changed: those of their open dunning cases that wait for another default card try it, if it is another. */
      const customer = Effect.fnUntraced(function*(id: string, at: string | null): Effect.fn.Return<Observation, PipelineError | RefundFailure> {
        if (Option.isNone(dunning)) return said("ignored")
        const open = (yield* dunning.value.openOf(id)).filter(({ record }) => account.accountOf(record.request.namespace) === at)
        if (open.length === 0) return said("ignored", "no open dunning case waits for this customer's default card")
        const { chargeKey, generation, request } = open[0]!.record
        const method = yield* heed(gateway.defaultPaymentMethod({ chargeKey, request, generation })).pipe(
          Effect.catchIf((error) => error.reason._tag === "InvalidRequest", () => Effect.succeed(null))
        )
        if (method === null) return said("ignored", "the customer has no default card")
        // A customer of another account may have the same id: ids are kept when an account's customers are copied.
        const read = { paymentMethod: method, namespaces: [...new Set(open.map(({ record }) => record.request.namespace))] }
        const cases = yield* dunning.value.offer(id, null, { actor: "webhook", reason: "the customer has another default card" }, read)
        return cases === 0 ? said("unchanged", `${method} was tried`) : said("settled", `${cases} dunning cases try ${method}`)
      })

      const deal = (event: WebhookEvent): Effect.Effect<Observation, PipelineError | RefundFailure> => {
        if (event.objectId === null) return Effect.succeed(said("ignored"))
        if (event.account === null && account.account !== null) return Effect.succeed(said("ignored", "an event of another account"))
        const dealing = event.account === null || event.account === account.account ? own : connected(event.account)
        switch (event.subject) {
          case "payment":
            return dealing.payment(event.objectId)
          case "charge":
            return dealing.charge(event.objectId)
          case "refund":
          case "dispute":
            return dealing.reversal(event.subject, event.objectId)
          case "customer":
            return customer(event.objectId, event.account ?? account.account)
          case "other":
            return Effect.succeed(said("ignored"))
        }
      }

      const settleOne = Effect.fnUntraced(function*({ event, tries }: DueEvent) {
        const result = yield* Effect.result(deal(event))
        if (Result.isFailure(result)) {
          const { message } = result.failure
          yield* Effect.logWarning(`event ${event.id} is dealt with later: ${message}`)
          // Those that failed together, under a rate limit for one, are not to come again together.
          const waitMs = Math.min(backoffMaxMs, 1000 * 2 ** Math.min(tries, 20)) * (1 - (yield* Random.next) / 2)
          yield* inbox.postpone(event.id, Math.round(waitMs), message)
          return false
        }
        const { detail, verdict } = result.success
        yield* inbox.finish(event.id, verdict, detail)
        yield* Metric.update(EngineMetrics.webhookEvents.of(verdict), 1)
        yield* Effect.logDebug("webhook event").pipe(Effect.annotateLogs({ eventId: event.id, type: event.type, verdict }))
        return true
      })

      const settleDue = Effect.gen(function*() {
        let done = 0
        let postponed = 0
        for (;;) {
          const due = yield* inbox.take(batch, holdMs)
          const results = yield* Effect.forEach(due, settleOne, { concurrency })
          done += results.filter((isDone) => isDone).length
          postponed += results.filter((isDone) => !isDone).length
          if (due.length < batch) return { done, postponed }
        }
      }).pipe(Effect.withSpan("Webhooks.settleDue"))

      return Webhooks.of({
        receive: Effect.fn("Webhooks.receive")(function*(body, signature) {
          const event = yield* source.open(body, signature).pipe(
            Effect.tapError((error) => Metric.update(EngineMetrics.webhookRefused.of(error.reason._tag), 1))
          )
          const fresh = yield* inbox.receive(event)
          if (fresh) yield* Queue.offer(arrived, undefined)
          return { eventId: event.id, fresh }
        }),
        settleDue,
        run: settleDue.pipe(
          Effect.andThen(inbox.purge(Duration.toMillis(keep), 1000)),
          Effect.catch((error) => Effect.logWarning(`webhook events wait, the next pass tries again: ${error.message}`)),
          Effect.catchDefect((defect) => Effect.logError("a pass over webhook events failed inside; the next one tries again", defect)),
          Effect.andThen(Effect.timeoutOrElse(Queue.take(arrived), { duration: interval, orElse: () => Effect.void })),
          Effect.forever
        )
      })
    })
  )

  /** With a pipeline of its own. */
  static readonly layer: Layer.Layer<
    Webhooks,
    Config.ConfigError,
    WebhookSource | WebhookInbox | Sightings | ProcessorAccount | Ledger | SpendCap | ChargeGateway
  > = Webhooks.layerNoDeps.pipe(Layer.provide(ChargePipeline.layer))
}
