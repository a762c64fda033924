/** Planted bugs of what goes on beside the charging: webhooks, reconciliation, refunds, dunning, a restored store. */
import { type ChargeRecord, ChargeRequest, Declined, DunningBook, Ledger, ReconcileBook, RefundGateway, RefundLedger, Succeeded } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { Context, Effect, Layer, Result } from "effect"
import type { BesidePlan } from "./BesidePlan.ts"
import type { Mutant } from "./Mutant.ts"
import type { Scenario } from "./Scenario.ts"

const has = (part: keyof BesidePlan) => ({ beside }: Scenario) => part in beside

interface Told {
  readonly type: string
  readonly data: { readonly object: { readonly id: string; readonly customer?: string; readonly amount?: number } }
}

const textOf = (body: Uint8Array) => Buffer.from(body).toString("utf8")
const saysPaid = ({ type }: Told) => type === "payment_intent.succeeded" || type === "charge.succeeded" || type === "invoice.paid"

/** Records as paid, on somebody's word, a row that has an object. */
const believe = (ledger: Ledger["Service"], isMeant: (row: ChargeRecord, told: Told) => boolean) => (body: Uint8Array) =>
  Effect.gen(function*() {
    const told: Told = JSON.parse(textOf(body))
    if (!saysPaid(told)) return
    const rows = yield* ledger.page("2026-10", "", 100)
    const row = rows.find((row) => row.state !== "succeeded" && row.paymentIntentId !== null && isMeant(row, told))
    if (row === undefined) return
    const { attempt, chargeKey, paymentIntentId, request } = row
    yield* ledger.settle({
      lease: { chargeKey, worker: "hooks", epoch: -1 },
      attempt,
      paymentIntentId,
      outcome: new Succeeded({ chargeKey, alreadySettled: false, paymentIntentId: paymentIntentId!, chargeId: null, amountReceivedMinor: request.amountMinor })
    })
  })

/** What comes of a webhook that is believed. */
const paidByWord = { within: 300, shows: /recorded as paid, and Stripe has no payment/, fits: has("hooks") } as const

/** All of them. */
export const besideMutants: ReadonlyArray<Mutant> = [
  {
    name: "a webhook is believed",
    story: "an event that says paid is recorded as it stands: neither its signature nor its object is looked at",
    ...paidByWord,
    hooks: (webhooks, { ledger }) => ({
      ...webhooks,
      receive: (body, signature) =>
        Effect.andThen(believe(ledger, (row, { data }) => row.paymentIntentId === data.object.id)(body), webhooks.receive(body, signature))
    })
  },
  {
    name: "a webhook for another charge",
    story: "an event is taken to be about the customer's open charge of that amount",
    ...paidByWord,
    hooks: (webhooks, { ledger }) => ({
      ...webhooks,
      receive: (body, signature) =>
        Effect.gen(function*() {
          const receipt = yield* Effect.result(webhooks.receive(body, signature))
          if (Result.isFailure(receipt)) return yield* receipt.failure
          yield* believe(ledger, ({ request }, { data }) => request.stripeCustomerId === data.object.customer && request.amountMinor === data.object.amount)(body)
          return receipt.success
        })
    })
  },
  {
    name: "reconciliation without a second look",
    story: "which row names which object is remembered from the run before, and what none named then is given up",
    within: 600,
    shows: /reconciliation gave up .*, which the row of/,
    fits: has("reconcile"),
    reconciling: (engine) => {
      const ledger = Context.get(engine, Ledger)
      let rows: ReadonlyArray<ChargeRecord> = []
      const early: Ledger["Service"] = {
        ...ledger,
        // The first thing that a run asks for.
        namespaces: (period) =>
          Effect.andThen(
            rows.length > 0 ? Effect.void : Effect.map(ledger.page(period, "", 100), (page) => {
              rows = page.filter(({ paymentIntentId }) => paymentIntentId !== null).map((row) => ({ ...row }))
            }),
            ledger.namespaces(period)
          ),
        page: () => Effect.succeed(rows),
        find: (chargeKey) => Effect.succeed(rows.find((row) => row.chargeKey === chargeKey))
      }
      const book = Effect.runSync(Effect.scoped(Layer.build(ReconcileBook.layerMemory.pipe(Layer.provide(Layer.succeed(Ledger, early))))))
      return Context.merge(engine, book).pipe(Context.add(Ledger, early))
    }
  },
  {
    name: "refund without idempotency",
    story: "after no answer a refund is sent anew, under another key and without a look",
    within: 600,
    shows: /made \d+ times|recorded as already_refunded|Stripe had to refuse/,
    fits: has("refunds"),
    refunding: (engine, { rng }) => {
      const gateway = Context.get(engine, RefundGateway)
      return Context.add(engine, RefundGateway, {
        ...gateway,
        find: () => Effect.succeed([]),
        refund: (order) => gateway.refund({ ...order, attempt: rng.between(1000, 1_000_000) })
      })
    }
  },
  {
    name: "refund above what was paid",
    story: "each refund is compared with the payment, and not with what went back before",
    within: 600,
    shows: /Stripe had to refuse|went back, and .* is recorded/,
    fits: has("refunds"),
    refunding: (engine, { ledger }) => {
      const book = Context.get(engine, RefundLedger)
      return Context.add(engine, RefundLedger, {
        ...book,
        claim: (request, worker) =>
          Effect.gen(function*() {
            const answer = yield* book.claim(request, worker)
            const record = yield* ledger.find(request.chargeKey)
            const outcome = record?.outcome
            if (answer._tag !== "TooLarge" || request.amountMinor === null || outcome?._tag !== "Succeeded") return answer
            const { chargeId, paymentIntentId } = outcome
            return {
              _tag: "Claimed",
              refund: {
                lease: { refundKey: request.refundKey, worker, epoch: 1 },
                leaseLeftMs: 15_000,
                chargeKey: request.chargeKey,
                namespace: record!.request.namespace,
                refundId: request.refundId,
                state: "requested",
                amountMinor: request.amountMinor,
                currency: record!.request.currency,
                reason: null,
                paymentIntentId,
                chargeId,
                processorRefundId: null,
                attempt: 1,
                resumed: false
              }
            }
          }),
        extend: (lease) => Effect.map(book.extend(lease), () => true)
      })
    }
  },
  {
    name: "dunning attempt with a new identity",
    story: "a declined charge is given up, and asked for again as another item",
    within: 600,
    shows: /was never asked for/,
    fits: has("dunning"),
    dunning: (engine, { cap, ledger }) => {
      const pipeline = Context.get(engine, ChargePipeline)
      return Context.add(engine, ChargePipeline, {
        ...pipeline,
        charge: (request) =>
          Effect.gen(function*() {
            const paymentMethod = (yield* ledger.find(request.chargeKey))?.chosenMethod ?? request.paymentMethod
            const taken = yield* ledger.claim(request, "dunning")
            if (taken._tag === "Claimed") {
              const { attempt, lease, paymentIntentId } = taken.charge
              yield* ledger.settle({
                lease, attempt, paymentIntentId,
                outcome: new Declined({
                  chargeKey: request.chargeKey, alreadySettled: false, paymentIntentId: paymentIntentId ?? "", code: "card_declined", declineCode: null, adviceCode: null, declinedChargeId: null,
                  detail: "asked for as another item"
                })
              })
            }
            yield* Effect.ignore(cap.release(request.chargeKey, 1000))
            return yield* pipeline.charge(new ChargeRequest({ ...request, item: `${request.item ?? "item"}_again` as never, ...(paymentMethod === undefined ? {} : { paymentMethod }) }))
          })
      })
    }
  },
  {
    name: "dunning before its time",
    story: "what was declined is asked for again before its day has come",
    within: 600,
    shows: /was asked for .* ms after its decline/,
    fits: has("dunning"),
    dunning: (engine) => {
      const book = Context.get(engine, DunningBook)
      return Context.add(engine, DunningBook, {
        ...book,
        look: (caseId, step) => Effect.map(book.look(caseId, step), (view) => view === undefined || view.dueInMs === null ? view : { ...view, dueInMs: view.dueInMs - 50_000 })
      })
    }
  },
  {
    name: "restored ledger without a restore point",
    story: "a ledger that has forgotten payments is charged from as if it had not",
    within: 1500,
    shows: /paid 2 times/,
    fits: has("restore"),
    forgetsRestorePoint: true
  }
]
