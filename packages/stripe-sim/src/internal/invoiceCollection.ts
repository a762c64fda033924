/**
 * What follows the draft of an invoice: finalize, pay, void, mark uncollectible, and its payments.
 *
 * An invoice has one PaymentIntent, so it is paid at most once. An invoice that advances by itself is collected by
 * Stripe too, also while its owner tries: the simulator does so on its clock.
 */
import type { Stripe } from "stripe"
import type { Account } from "./Account.ts"
import { type Answer, fail, missing, ok, refuse } from "./answer.ts"
import { attempt } from "./attempt.ts"
import { checkTerms } from "./checks.ts"
import { finalizeRules, payRules, paymentsRules } from "./invoiceRules.ts"
import { become, contextOf, dueOf, pay, paymentOf, totalOf } from "./invoiceState.ts"
import { inHash, integer, type Params, text, texts, unexpandable } from "./params.ts"
import type { IntentRecord, InvoiceRecord, PaymentMethodRecord } from "./records.ts"
import * as renderObject from "./render.ts"
import * as render from "./renderInvoice.ts"
import type { Route } from "./route.ts"

const plain = (message: string): Answer => fail({ status: 400, saved: true, type: "invalid_request_error", message })

/** The invoice in the path. */
export const found = (account: Account, id: string, act: (invoice: InvoiceRecord) => Answer): Answer => {
  const invoice = account.invoices.get(id)
  return invoice === undefined ? missing("invoice", id, "id", true) : act(invoice)
}

const expandable = ["customer", "payments", "confirmation_secret"]

/** The answer that shows an invoice. Lines and payments change later, so what was shown is fixed now. */
export const shown = (account: Account, invoice: InvoiceRecord, params: Params): Answer => {
  const refused = unexpandable(params, expandable)
  if (refused !== undefined) return refused
  const wanted = texts(params, "expand")
  const context = contextOf(account, invoice)
  const { customer } = context
  const payment = paymentOf(account, invoice)
  const payments: Stripe.ApiList<Stripe.InvoicePayment> = {
    object: "list",
    data: payment === undefined ? [] : [payment],
    has_more: false,
    url: "/v1/invoice_payments"
  }
  return ok(() =>
    render.invoice(invoice, context, {
      ...(wanted.includes("payments") ? { payments } : {}),
      ...(wanted.includes("customer") && customer !== undefined
        ? { customer: customer.deleted ? renderObject.deletedCustomer(customer.id) : renderObject.customer(customer) }
        : {}),
      ...(wanted.includes("confirmation_secret")
        ? {
          confirmation_secret: invoice.intent === null
            ? null
            : { client_secret: `${invoice.intent}_secret_sim`, type: "payment_intent" }
        }
        : {})
    })
  )
}

const daySeconds = 24 * 60 * 60

/** The PaymentIntent that collects an invoice. */
const intentOf = (account: Account, invoice: InvoiceRecord, dueMinor: number): IntentRecord => {
  const intent = account.intents.put<IntentRecord>({
    id: account.nextId("pi_3"),
    seq: account.intents.nextSeq,
    createdS: account.nowSFor(invoice.customer),
    status: "requires_payment_method",
    amountMinor: dueMinor,
    amountReceivedMinor: 0,
    currency: invoice.currency,
    customer: invoice.customer,
    paymentMethod: null,
    paymentMethodTypes: ["card", "us_bank_account"],
    allowedTypes: null,
    automaticMethods: "off",
    captureMethod: "automatic",
    description: "Payment for Invoice",
    receiptEmail: null,
    statementDescriptor: invoice.statementDescriptor,
    statementDescriptorSuffix: null,
    transferGroup: null,
    setupFutureUsage: null,
    metadata: {},
    failure: null,
    latestCharge: null,
    canceledAtS: null,
    cancellationReason: null,
    invoice: invoice.id
  })
  account.emit("payment_intent.created", () => renderObject.paymentIntent(intent))
  return intent
}

/** Moves a customer's balance, of which nothing is told but by the customer. */
const moveBalance = (account: Account, customerId: string, byMinor: number): void => {
  const customer = account.customer(customerId)
  if (customer !== undefined && byMinor !== 0) account.customers.set(customerId, { ...customer, balanceMinor: customer.balanceMinor + byMinor })
}

/** What an invoice took of its customer's balance: more than 0 is credit that was used. */
const takenOf = (account: Account, invoice: InvoiceRecord): number =>
  totalOf(account, invoice) - dueOf(account, invoice)

/**
 * Ends the draft: the lines are fixed, the customer's balance is taken into account, the invoice has a number and, when something
 * is due, a PaymentIntent. What it has of credit beyond its charges stays in the balance.
 */
export const finalize = (account: Account, invoice: InvoiceRecord): InvoiceRecord | Answer => {
  const items = contextOf(account, invoice).items
  if (items.length === 0) return refuse("Nothing to invoice for customer", "invoice_no_customer_line_items", "invoice")
  const totalMinor = totalOf(account, invoice)
  const startingBalanceMinor = account.customer(invoice.customer)?.balanceMinor ?? 0
  const counted: InvoiceRecord = { ...invoice, totalMinor, startingBalanceMinor }
  const dueMinor = dueOf(account, counted)
  const refused = dueMinor > 0 ? checkTerms(account, dueMinor, invoice.currency) : undefined
  if (refused !== undefined) return refused
  moveBalance(account, invoice.customer, takenOf(account, counted))
  const nowS = account.nowSFor(invoice.customer)
  const open = become(account, {
    ...counted,
    status: "open",
    finalizedS: nowS,
    finalizesAtS: null,
    dueS: invoice.dueS ?? (invoice.daysUntilDue === null ? null : nowS + invoice.daysUntilDue * daySeconds),
    number: invoice.number ?? `SIM-${String(invoice.seq + 1).padStart(4, "0")}`,
    intent: dueMinor > 0 ? intentOf(account, invoice, dueMinor).id : null
  }, "invoice.finalized")
  return dueMinor > 0 ? open : pay(account, open, false)
}

const finalizeRoute = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (invoice) => {
    if (invoice.status !== "draft") {
      return plain("This invoice is already finalized, you can't re-finalize a non-draft invoice.")
    }
    const given = text(params, "auto_advance")
    const autoAdvance = given === undefined ? invoice.autoAdvance : given === "true"
    const open = finalize(account, { ...invoice, autoAdvance })
    if (!("seq" in open)) return open
    // Stripe collects what advances by itself, an hour later at the earliest.
    if (autoAdvance) retryLater(account, id, 60 * 60)
    return shown(account, open, params)
  })

const methodFor = (account: Account, invoice: InvoiceRecord, named: string | undefined): PaymentMethodRecord | Answer => {
  const id = named ?? invoice.defaultPaymentMethod ?? account.customer(invoice.customer)?.defaultPaymentMethod
  if (id === undefined || id === null) {
    return refuse(
      "There is no `default_payment_method` set on this Customer or Invoice. Please set either an `default_payment_method` on the Customer or Invoice or specify a `payment_method`.",
      "missing",
      "payment_method"
    )
  }
  const method = account.paymentMethod(id)
  if (method === undefined) return missing("PaymentMethod", id, "payment_method", false)
  return method.customer !== null && method.customer !== invoice.customer
    ? refuse(
      `The customer does not have a payment method with the ID ${id}. The payment method must be attached to the customer.`,
      "resource_missing",
      "payment_method"
    )
    : method
}

/** One attempt to collect an open invoice; `show` answers with what has become of it. */
const collect = (
  account: Account,
  invoice: InvoiceRecord,
  named: string | undefined,
  offSession: boolean,
  show: () => Answer
): Answer => {
  const intent = account.intents.get(invoice.intent ?? "")
  if (intent === undefined) return plain("This invoice has nothing to pay.")
  if (intent.status === "processing") return plain("This invoice's payment is still processing.")
  const method = methodFor(account, invoice, named)
  if (!("behaviour" in method)) return method
  return attempt(account, intent, method, {
    offSession,
    errorOnRequiresAction: false,
    show: (now) =>
      now.status === "requires_action"
        ? fail({
          status: 402,
          saved: true,
          type: "card_error",
          code: "invoice_payment_intent_requires_action",
          message:
            "Payment for this invoice requires additional user action before it can be completed successfully. Payment can be completed using the PaymentIntent associated with the invoice.",
          intent: now
        })
        : show()
  })
}

const retriesS: ReadonlyArray<number> = [3 * daySeconds, 5 * daySeconds, 7 * daySeconds]

/** Stripe's own attempt to collect an invoice that advances by itself, and the next ones when it fails. */
export const retryLater = (account: Account, id: string, delayS: number): void => {
  const invoice = account.invoices.get(id)
  if (invoice === undefined || invoice.collection !== "charge_automatically") return
  account.invoices.put({ ...invoice, nextAttemptS: account.nowSFor(invoice.customer) + delayS })
  account.laterFor(invoice.customer, delayS * 1000, () => {
    const now = account.invoices.get(id)
    if (now === undefined || now.status !== "open" || !now.autoAdvance) return
    collect(account, now, undefined, true, () => ok(() => ({})))
    const after = account.invoices.get(id)
    if (after === undefined || after.status !== "open") return
    const next = retriesS[after.attempts - 1]
    if (next === undefined) account.invoices.put({ ...after, nextAttemptS: null })
    else retryLater(account, id, next)
  })
}

const payRoute = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (before) => {
    if (before.status === "paid") return plain("Invoice is already paid")
    if (before.status === "void") return plain("You can only pay an open or uncollectible invoice; this one is void.")
    const invoice = before.status === "draft" ? finalize(account, before) : before
    if (!("seq" in invoice)) return invoice
    const show = () => shown(account, account.invoices.get(id) ?? invoice, params)
    if (invoice.status === "paid") return show()
    if (text(params, "paid_out_of_band") !== "true") {
      return collect(account, invoice, text(params, "payment_method"), text(params, "off_session") !== "false", show)
    }
    const intent = account.intents.get(invoice.intent ?? "")
    if (intent?.status === "processing") return plain("This invoice's payment is still processing.")
    const paid = pay(account, invoice, true)
    cancelIntent(account, paid)
    return shown(account, paid, params)
  })

/** The intent of an invoice that nobody is to pay any more. */
const cancelIntent = (account: Account, invoice: InvoiceRecord): void => {
  const intent = account.intents.get(invoice.intent ?? "")
  if (intent === undefined || intent.status === "succeeded" || intent.status === "canceled") return
  const canceled = account.intents.put<IntentRecord>({
    ...intent,
    status: "canceled",
    canceledAtS: account.nowS,
    cancellationReason: "void_invoice"
  })
  account.emit("payment_intent.canceled", () => renderObject.paymentIntent(canceled))
}

const voidRoute = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (invoice) => {
    if (invoice.status !== "open" && invoice.status !== "uncollectible") {
      return plain("You can only pass in open invoices. This invoice isn't open.")
    }
    if (account.intents.get(invoice.intent ?? "")?.status === "processing") {
      return plain("You cannot void an invoice while its payment is processing.")
    }
    const nowS = account.nowSFor(invoice.customer)
    const voided = become(account, { ...invoice, status: "void", voidedS: nowS, nextAttemptS: null }, "invoice.voided")
    cancelIntent(account, voided)
    moveBalance(account, voided.customer, -takenOf(account, voided))
    return shown(account, voided, params)
  })

const uncollectibleRoute = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (invoice) => {
    if (invoice.status !== "open") return plain("You can only pass in open invoices. This invoice isn't open.")
    const given = become(account, {
      ...invoice,
      status: "uncollectible",
      uncollectibleS: account.nowSFor(invoice.customer),
      nextAttemptS: null
    }, "invoice.marked_uncollectible")
    return shown(account, given, params)
  })

const paymentsRoute = (account: Account, params: Params): Answer => {
  const invoiceId = text(params, "invoice") ?? account.intents.get(inHash(params, "payment", "payment_intent") ?? "")?.invoice
  const invoice = account.invoices.get(invoiceId ?? "")
  const payment = invoice === undefined ? undefined : paymentOf(account, invoice)
  const status = text(params, "status")
  const limit = integer(params, "limit") ?? 10
  const data = payment === undefined || (status !== undefined && payment.status !== status) ? [] : [payment]
  return ok((): Stripe.ApiList<Stripe.InvoicePayment> => ({
    object: "list",
    data: data.slice(0, limit),
    has_more: false,
    url: "/v1/invoice_payments"
  }))
}

/** The endpoints of this part of the resource. */
export const collectionRoutes: ReadonlyArray<Route> = [
  { method: "POST", path: "invoices/:id/finalize", rules: finalizeRules, handler: finalizeRoute },
  { method: "POST", path: "invoices/:id/pay", rules: payRules, handler: payRoute },
  { method: "POST", path: "invoices/:id/void", rules: { expand: "strings" }, handler: voidRoute },
  { method: "POST", path: "invoices/:id/mark_uncollectible", rules: { expand: "strings" }, handler: uncollectibleRoute },
  { method: "GET", path: "invoice_payments", rules: paymentsRules, handler: paymentsRoute }
]
