/** `purser audit`: likely double charges of an account, and a proposal of refunds in a file. Nothing is changed. */
import { type Currency, Money } from "@purser/core"
import { Audit, type AuditOptions, type Suspicion } from "@purser/engine"
import { StripeAccount } from "@purser/stripe"
import { Effect, Layer } from "effect"
import { CommandFailed, exitStatus } from "../CommandFailed.ts"
import { openLines } from "../ui/LinesFile.ts"
import { note, out } from "../ui/Output.ts"
import { table } from "../ui/table.ts"

/** Suspicions that are shown; the proposal has all that are worth a refund. */
const shownMax = 100

const money = (minor: number, currency: string) => `${Money.formatMinor(BigInt(minor), currency as Currency)} ${currency}`

/** One line of the proposal: what would be refunded, what would stay, and why. */
const proposalOf = ({ again, amountMinor, confidence, currency, evidence, first, proposedRefundMinor, stripeCustomerId }: Suspicion) => ({
  refund: { charge: again.id, payment_intent: again.paymentIntentId, amount: proposedRefundMinor, currency, reason: "duplicate" },
  keep: { charge: first.id, payment_intent: first.paymentIntentId, amount: amountMinor, currency },
  customer: stripeCustomerId,
  charged_at: [first.createdMs, again.createdMs].map((ms) => new Date(ms).toISOString()),
  idempotency_keys: [first.idempotencyKey, again.idempotencyKey],
  confidence,
  evidence: evidence.map(({ points, text }) => `${points}: ${text}`)
})

/** Looks, lists, proposes. */
export const audit = (options: AuditOptions, output: { readonly proposal: string | undefined; readonly json: boolean }) =>
  Effect.scoped(Effect.gen(function*() {
    const file = output.proposal === undefined ? undefined : yield* openLines("proposal", output.proposal)
    const shown: Array<Suspicion> = []
    let total = 0
    const { audit } = yield* Audit
    const report = yield* audit(options, (suspicion) =>
      Effect.gen(function*() {
        total += 1
        if (shown.length < shownMax) shown.push(suspicion)
        if (file !== undefined && suspicion.proposedRefundMinor > 0) yield* file.write(JSON.stringify(proposalOf(suspicion)))
      }))
    if (file !== undefined) yield* file.finish
    if (output.json) yield* out(JSON.stringify({ ...report, found: shown }))
    else {
      if (shown.length > 0) {
        yield* out(table(
          ["confidence", "customer", "amount", "first", "again", "refund", "evidence"],
          shown.map(({ again, amountMinor, confidence, currency, evidence, first, proposedRefundMinor, stripeCustomerId }) => [
            confidence, stripeCustomerId, money(amountMinor, currency), first.id, again.id,
            proposedRefundMinor === 0 ? "none" : money(proposedRefundMinor, currency),
            evidence.map(({ points, text }) => points === "for" ? text : `but ${text}`).join("; ")
          ]),
          [2, 5]
        ))
      }
      if (total > shown.length) yield* note(`${total - shown.length} more are not shown`)
      const proposed = Object.entries(report.proposedMinor).map(([currency, minor]) => money(minor, currency)).join(", ")
      yield* out(`${report.charges} charges looked at, ${total} look like repetitions; ${proposed === "" ? "no refund is proposed" : `${proposed} proposed for refund`}`)
    }
    if (report.suspicions.high + report.suspicions.medium > 0) {
      return yield* new CommandFailed({ text: `${report.suspicions.high + report.suspicions.medium} likely double charges; nothing was changed`, status: exitStatus.partial })
    }
  })).pipe(Effect.provide(Audit.layer.pipe(Layer.provide(StripeAccount.layerConfig))))
