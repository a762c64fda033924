/**
 * The gateway's steps on invoices: a draft is made and its id stored; lines are added, each once; the total is compared with
 * the charge; only then it is finalized; only then paid.
 *
 * Stripe pays an invoice at most once, for ever. Lines it adds as often as it is asked, so that what is there is read before
 * anything is added; two of one line, or one of somebody else's, show in the total, and nothing is finalized. Our invoices do
 * not advance by themselves: Stripe collects none of them on its own.
 */
import {
  AuthenticationRequired, CardDeclined, type ChargeError, type ChargeGateway, type GatewayOrder, type GatewayPayment, InvalidRequest,
  UnexpectedAnswer
} from "@purser/core"
import { Effect } from "effect"
import type { Stripe } from "stripe"
import { type InvoiceLine, type InvoiceLines, linesProblem } from "../InvoiceLines.ts"
import type { StripeAnswer, StripeClient } from "../StripeClient.ts"
import { PaymentIntent } from "./answers.ts"
import { type Ask, askFor } from "./ask.ts"
import { customerMethod } from "./customerMethod.ts"
import { Invoice, intentIdOf, Item, Lines, toPayment } from "./invoiceAnswers.ts"
import { listOurs } from "./listOurs.ts"
import { metadataOf } from "./metadata.ts"
import { probeWith } from "./probe.ts"
import { problemOf, reasonOf } from "./refusal.ts"
import { stepKey } from "./stepKey.ts"
const withPayments = { expand: ["payments"] }
const linePages = 100

/** The gateway on a client. */
export const makeInvoices = (client: StripeClient["Service"], linesOf: InvoiceLines): ChargeGateway["Service"] => {
  const refused = (ask: Ask, operation: string, answer: StripeAnswer) => ask.fail(reasonOf(operation, answer, client.scrub), answer.requestId)

  const readInvoice = (ask: Ask, operation: string, answer: StripeAnswer, id: string | undefined) =>
    Effect.flatMap(ask.read(operation, Invoice, answer.json, answer.requestId), (invoice) =>
      id === undefined || invoice.id === id
        ? Effect.succeed(invoice)
        : ask.fail(new UnexpectedAnswer({ operation, detail: `asked for ${id}, got ${client.scrub(invoice.id)}` }), answer.requestId))

  const invoiceCall = Effect.fnUntraced(function*(
    ask: Ask,
    operation: string,
    id: string | undefined,
    use: (stripe: Stripe) => PromiseLike<unknown>
  ) {
    const answer = yield* ask.call(operation, use)
    return answer.status === 200 ? yield* readInvoice(ask, operation, answer, id) : yield* refused(ask, operation, answer)
  })

  const readIntent = Effect.fnUntraced(function*(ask: Ask, operation: string, id: string) {
    const answer = yield* ask.call(operation, (stripe) => stripe.paymentIntents.retrieve(id))
    return answer.status === 200 ? yield* ask.read(operation, PaymentIntent, answer.json, answer.requestId) : yield* refused(ask, operation, answer)
  })

  /** How an invoice is being paid stands on its PaymentIntent. */
  const whole = Effect.fnUntraced(function*(ask: Ask, operation: string, invoice: Invoice): Effect.fn.Return<GatewayPayment, ChargeError> {
    const intentId = intentIdOf(invoice)
    if (invoice.status === "uncollectible") {
      return yield* ask.fail(new UnexpectedAnswer({ operation, detail: `${invoice.id} was written off as uncollectible; void it, or see it paid` }), null)
    }
    const known = toPayment(invoice, undefined, client.scrub)
    if (intentId === null || (invoice.status !== "open" && invoice.status !== "paid")) return known
    return yield* Effect.matchEffect(readIntent(ask, `${operation}.intent`, intentId), {
      onSuccess: (intent) => Effect.succeed(toPayment(invoice, intent, client.scrub)),
      onFailure: (error) => {
        // What is paid is paid, whether or not we may see the charge behind it; of the rest a refusal to show it says nothing.
        if (invoice.status === "paid") return Effect.succeed(known)
        return error.outcome === "unknown"
          ? Effect.fail(error)
          : ask.fail(new UnexpectedAnswer({ operation, detail: `the payment of ${invoice.id} cannot be read: ${error.message}` }), error.requestId)
      }
    })
  })

  const retrieveAs = (ask: Ask, operation: string, id: string) =>
    Effect.flatMap(
      invoiceCall(ask, operation, id, (stripe) => stripe.invoices.retrieve(id, withPayments)),
      (invoice) => whole(ask, operation, invoice)
    )

  const create = Effect.fnUntraced(function*(order: GatewayOrder, keySuffix: string) {
    const { request } = order
    const invoice = yield* invoiceCall(askFor(client, order), "create_invoice", undefined, (stripe) =>
      stripe.invoices.create({
        customer: request.stripeCustomerId,
        currency: request.currency,
        auto_advance: false,
        collection_method: "charge_automatically",
        pending_invoice_items_behavior: "exclude",
        metadata: metadataOf(order)
      }, { idempotencyKey: stepKey(order, "invoice", keySuffix) }))
    return toPayment(invoice, undefined, client.scrub)
  })

  /** The ids of our lines that are on the invoice. */
  const linesOn = Effect.fnUntraced(function*(ask: Ask, id: string) {
    const found = new Set<string>()
    let after: string | undefined
    for (let page = 0; page < linePages; page++) {
      const cursor = after === undefined ? {} : { starting_after: after }
      const answer = yield* ask.call("list_lines", (stripe) => stripe.invoices.listLineItems(id, { limit: 100, ...cursor }))
      if (answer.status !== 200) return yield* refused(ask, "list_lines", answer)
      const { data, has_more } = yield* ask.read("list_lines", Lines, answer.json, answer.requestId)
      for (const { metadata } of data) if (metadata?.["line"] !== undefined) found.add(metadata["line"])
      after = data.at(-1)?.id
      if (!has_more) return found
    }
    return yield* ask.fail(new UnexpectedAnswer({ operation: "list_lines", detail: "the lines do not end" }), null)
  })

  const addLine = Effect.fnUntraced(function*(ask: Ask, order: GatewayOrder, id: string, line: InvoiceLine, keySuffix: string) {
    const { request } = order
    const answer = yield* ask.call("add_line", (stripe) =>
      stripe.invoiceItems.create({
        customer: request.stripeCustomerId,
        invoice: id,
        amount: line.amountMinor,
        currency: request.currency,
        ...(line.description === undefined ? {} : { description: line.description }),
        metadata: { charge_key: order.chargeKey, line: line.id }
      }, { idempotencyKey: stepKey(order, `line:${line.id}`, keySuffix) }))
    if (answer.status !== 200) return yield* refused(ask, "add_line", answer)
    // What somebody else answered in Stripe's place has added nothing.
    yield* ask.read("add_line", Item, answer.json, answer.requestId)
  })

  const prepare = Effect.fnUntraced(function*(order: GatewayOrder, id: string, keySuffix: string): Effect.fn.Return<GatewayPayment, ChargeError> {
    const ask = askFor(client, order)
    const lines = linesOf(order.request)
    const problem = linesProblem(lines)
    if (problem !== undefined) return yield* ask.fail(new InvalidRequest({ param: "lines", code: "lines_invalid", detail: problem }), null)
    const there = yield* linesOn(ask, id)
    for (const line of lines) if (!there.has(line.id)) yield* addLine(ask, order, id, line, keySuffix)
    const draft = yield* invoiceCall(ask, "total", id, (stripe) => stripe.invoices.retrieve(id, withPayments))
    if (draft.status !== "draft") return yield* whole(ask, "total", draft)
    const payment = toPayment(draft, undefined, client.scrub)
    // Whoever asked compares the amount: what does not fit is shown as it is, and stays a draft.
    if (payment.amountMinor !== order.request.amountMinor) return { ...payment, status: "unconfirmed" }
    const finalized = yield* invoiceCall(ask, "finalize", id, (stripe) =>
      stripe.invoices.finalizeInvoice(id, { auto_advance: false, ...withPayments }, { idempotencyKey: stepKey(order, "finalize", keySuffix) }))
    return toPayment(finalized, undefined, client.scrub)
  })

  const confirm: ChargeGateway["Service"]["confirm"] = Effect.fnUntraced(function*(order, { attempt, id, keySuffix, paymentMethod }) {
    const ask = askFor(client, order)
    const answer = yield* ask.call("pay", (stripe) =>
      stripe.invoices.pay(id, { payment_method: paymentMethod, off_session: true, ...withPayments }, {
        idempotencyKey: stepKey(order, `pay:${attempt}`, keySuffix)
      }))
    if (answer.status === 200) return yield* whole(ask, "pay", yield* readInvoice(ask, "pay", answer, id))
    const problem = problemOf(answer)
    const reason = reasonOf("pay", answer, client.scrub)
    if (problem === undefined || (answer.status !== 402 && reason._tag !== "InvalidRequest")) return yield* ask.fail(reason, answer.requestId)
    // An invoice that was paid before is refused like one that cannot be paid: the invoice itself is asked.
    const payment = yield* retrieveAs(ask, "pay.evidence", id).pipe(
      Effect.catchTag("ChargeError", (error) =>
        error.outcome === "unknown"
          ? Effect.fail(error)
          : ask.fail(new UnexpectedAnswer({ operation: "pay", detail: `refused, and the invoice cannot be read: ${error.message}` }), error.requestId))
    )
    if (payment.status === "succeeded" || payment.status === "processing" || payment.status === "canceled") return payment
    if (answer.status !== 402) return yield* ask.fail(reason, answer.requestId)
    const detail = client.scrub(problem.message ?? "")
    const code = problem.code ?? problem.type
    const wantsCustomer = [code, problem.decline_code].some((word) =>
      word === "authentication_required" || word === "invoice_payment_intent_requires_action")
    return yield* ask.fail(
      wantsCustomer || payment.status === "requires_action"
        ? new AuthenticationRequired({ detail })
        : new CardDeclined({
          code, declineCode: problem.decline_code ?? null, adviceCode: problem.advice_code ?? null, declinedChargeId: problem.charge ?? null, detail
        }),
      answer.requestId
    )
  })

  const cancel = Effect.fnUntraced(function*(order: GatewayOrder, id: string) {
    const ask = askFor(client, order)
    const payment = yield* retrieveAs(ask, "cancel", id)
    if (payment.status === "succeeded" || payment.status === "canceled") return payment
    const answer = yield* ask.call("cancel", (stripe) => payment.status === "draft" ? stripe.invoices.del(id) : stripe.invoices.voidInvoice(id))
    return answer.status === 200 ? { ...payment, status: "canceled" as const } : yield* refused(ask, "cancel", answer)
  })

  /** Paid before open before draft; what was voided is as good as none. */
  const precedence: ReadonlyArray<Invoice["status"]> = ["paid", "uncollectible", "open", "draft"]
  const find = Effect.fnUntraced(function*(order: GatewayOrder, sinceMs: number) {
    const ask = askFor(client, order)
    const ours: Array<Invoice> = []
    const listed = yield* listOurs(client, order, sinceMs, (stripe, window) =>
      stripe.invoices.list({ customer: order.request.stripeCustomerId, ...window }))
    for (const { json, requestId } of listed) ours.push(yield* ask.read("find", Invoice, json, requestId))
    for (const status of precedence) {
      const oldest = ours.findLast((invoice) => invoice.status === status)
      if (oldest !== undefined) return yield* retrieveAs(ask, "find", oldest.id)
    }
  })

  return {
    name: "invoices",
    probe: probeWith(client),
    create,
    prepare,
    confirm,
    cancel,
    find,
    retrieve: (order, id) => retrieveAs(askFor(client, order), "retrieve", id),
    defaultPaymentMethod: (order) => customerMethod(client, order, "payment_method")
  }
}
