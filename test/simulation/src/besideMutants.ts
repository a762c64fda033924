/** Planted bugs of what goes on beside the charging: webhooks, reconciliation, refunds, dunning, a restored store. */
import { type ChargeRecord, type Ledger, Succeeded } from "@purser/core"
import { Effect, Result } from "effect"
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

/** All of them. */
export const besideMutants: ReadonlyArray<Mutant> = [
  {
    name: "a webhook is believed",
    story: "an event that says paid is recorded as it stands: neither its signature nor its object is looked at",
    within: 300,
    shows: /recorded as paid, and Stripe has no payment/,
    fits: has("hooks"),
    hooks: (webhooks, { ledger }) => ({
      ...webhooks,
      receive: (body, signature) =>
        Effect.andThen(believe(ledger, (row, { data }) => row.paymentIntentId === data.object.id)(body), webhooks.receive(body, signature))
    })
  },
  {
    name: "a webhook for another charge",
    story: "an event is taken to be about the customer's open charge of that amount",
    within: 300,
    shows: /recorded as paid, and Stripe has no payment/,
    fits: has("hooks"),
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
  }
]
