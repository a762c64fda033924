/**
 * `/v1/payment_intents`: create, retrieve, update, confirm, cancel, list.
 *
 * Defines which status allows which act. Refuses capture, manual confirmation and everything that needs a browser.
 */
import type { Account } from "./Account.ts"
import { type Answer, invalid, missing, ok, refuse } from "./answer.ts"
import { attempt, type AttemptOptions, shown } from "./attempt.ts"
import { checkCustomer, checkTerms } from "./checks.ts"
import { page } from "./lists.ts"
import { inHash, integer, mergeMetadata, type Params, required, text, textOr, texts, unexpandable } from "./params.ts"
import { cancelRules, confirmRules, createRules, listRules, retrieveRules, updateRules } from "./paymentIntentRules.ts"
import type { IntentRecord, IntentStatus, PaymentMethodRecord } from "./records.ts"
import * as render from "./render.ts"
import type { Route } from "./route.ts"

const confirmable: ReadonlyArray<IntentStatus> = ["requires_payment_method", "requires_confirmation", "requires_action"]

const show = (account: Account, params: Params) => (intent: IntentRecord): Answer => {
  const wanted = texts(params, "expand")
  if (wanted.length === 0) return shown(intent)
  const refused = unexpandable(params, ["customer", "latest_charge", "payment_method"])
  if (refused !== undefined) return refused
  // Expanded objects change later, so what was shown is written out now.
  const charge = wanted.includes("latest_charge") ? account.charges.get(intent.latestCharge ?? "") : undefined
  const method = wanted.includes("payment_method") ? account.paymentMethod(intent.paymentMethod ?? "") : undefined
  const customer = wanted.includes("customer") ? account.customer(intent.customer ?? "") : undefined
  return written(render.paymentIntent(intent, {
    ...(charge === undefined ? {} : { latest_charge: render.charge(charge) }),
    ...(method === undefined ? {} : { payment_method: render.paymentMethod(method) }),
    ...(customer === undefined
      ? {}
      : { customer: customer.deleted ? render.deletedCustomer(customer.id) : render.customer(customer) })
  }))
}

const written = (body: unknown): Answer => ok(() => body)

const isMethod = (found: PaymentMethodRecord | Answer): found is PaymentMethodRecord => "behaviour" in found

/** The method a parameter names, if this intent may be paid with it. */
const usableMethod = (account: Account, id: string, intent: IntentRecord): PaymentMethodRecord | Answer => {
  const found = account.paymentMethod(id)
  if (found === undefined) return missing("PaymentMethod", id, "payment_method", false)
  if (found.customer !== null && found.customer !== intent.customer) {
    return refuse(
      `The customer does not have a payment method with the ID ${id}. The payment method must be attached to the customer.`,
      "resource_missing",
      "payment_method"
    )
  }
  if (intent.automaticMethods === "off" && !intent.paymentMethodTypes.includes(found.behaviour.type)) {
    return refuse(
      `The PaymentMethod provided (${found.behaviour.type}) is not allowed for this PaymentIntent. Please attach a PaymentMethod of one of the following types: ${intent.paymentMethodTypes.join(", ")}.`,
      "payment_intent_incompatible_payment_method",
      "payment_method"
    )
  }
  return found
}

const attemptOptions = (account: Account, params: Params): AttemptOptions => ({
  offSession: (text(params, "off_session") ?? "false") !== "false",
  errorOnRequiresAction: text(params, "error_on_requires_action") === "true",
  show: show(account, params)
})

const needsReturnUrl = (intent: IntentRecord, params: Params): Answer | undefined =>
  intent.automaticMethods === "always" && (text(params, "off_session") ?? "false") === "false" &&
    text(params, "return_url") === undefined
    ? invalid(
      "This PaymentIntent is configured to accept payment methods enabled in your Dashboard. Because some of these payment methods might redirect your customer off of your page, you must provide a `return_url`. If you don't want to accept redirect-based payment methods, set `automatic_payment_methods[enabled]` to `true` and `automatic_payment_methods[allow_redirects]` to `never` when creating Setup Intents and Payment Intents.",
      "return_url"
    )
    : undefined

const missingMethodMessage =
  "You cannot confirm this PaymentIntent because it's missing a payment method. You can either update the PaymentIntent with a payment method and then confirm it again, or confirm it again directly with a payment method or ConfirmationToken."

/** Keeps a new intent and tells of it. */
const begin = (account: Account, intent: IntentRecord): IntentRecord => {
  account.intents.put(intent)
  account.emit("payment_intent.created", () => render.paymentIntent(intent))
  return intent
}

const everyType = ["card", "us_bank_account"]

/** How the intent may be paid; the ways to say so exclude each other. */
const chooseMethods = (
  params: Params
): Pick<IntentRecord, "paymentMethodTypes" | "allowedTypes" | "automaticMethods"> | Answer => {
  const given = ["allowed_payment_method_types", "automatic_payment_methods", "payment_method_types"]
    .filter((name) => params[name] !== undefined)
  if (given.length > 1) {
    return invalid(`You may only specify one of these parameters: ${given.join(", ")}.`, given[0], "parameters_exclusive")
  }
  const allowed = texts(params, "allowed_payment_method_types")
  if (allowed.length > 0) {
    // What is not available is filtered out without an error, as at Stripe.
    const types = allowed.filter((type) => everyType.includes(type))
    return { paymentMethodTypes: types, allowedTypes: allowed, automaticMethods: "off" }
  }
  const types = texts(params, "payment_method_types")
  if (types.length > 0) return { paymentMethodTypes: types, allowedTypes: null, automaticMethods: "off" }
  return inHash(params, "automatic_payment_methods", "enabled") === "false"
    ? { paymentMethodTypes: ["card"], allowedTypes: null, automaticMethods: "off" }
    : {
      paymentMethodTypes: everyType,
      allowedTypes: null,
      automaticMethods: inHash(params, "automatic_payment_methods", "allow_redirects") === "never" ? "never" : "always"
    }
}

const create = (account: Account, params: Params): Answer => {
  const amountMinor = integer(params, "amount")
  const currency = text(params, "currency")?.toLowerCase()
  if (amountMinor === undefined) return required("amount")
  if (currency === undefined) return required("currency")
  const confirm = text(params, "confirm") === "true"
  if (!confirm && params["off_session"] !== undefined) {
    return invalid(
      "You cannot pass `off_session` when creating a PaymentIntent unless `confirm` is set to `true`.",
      "off_session"
    )
  }
  const choice = chooseMethods(params)
  if ("status" in choice) return choice
  const customer = text(params, "customer") ?? null
  const refused = checkTerms(account, amountMinor, currency) ?? checkCustomer(account, customer)
  if (refused !== undefined) return refused
  const draft: IntentRecord = {
    id: account.nextId("pi_3"),
    seq: account.intents.nextSeq,
    createdS: account.nowS,
    status: "requires_payment_method",
    amountMinor,
    amountReceivedMinor: 0,
    currency,
    customer,
    paymentMethod: null,
    ...choice,
    captureMethod: text(params, "capture_method") === "automatic" ? "automatic" : "automatic_async",
    description: text(params, "description") ?? null,
    receiptEmail: text(params, "receipt_email") ?? null,
    statementDescriptor: text(params, "statement_descriptor") ?? null,
    statementDescriptorSuffix: text(params, "statement_descriptor_suffix") ?? null,
    transferGroup: text(params, "transfer_group") ?? null,
    setupFutureUsage: text(params, "setup_future_usage") === "off_session"
      ? "off_session"
      : text(params, "setup_future_usage") === "on_session"
      ? "on_session"
      : null,
    metadata: mergeMetadata({}, params),
    failure: null,
    latestCharge: null,
    canceledAtS: null,
    cancellationReason: null,
    invoice: null
  }
  const methodId = text(params, "payment_method")
  if (methodId === undefined) {
    return confirm
      ? refuse(missingMethodMessage, "payment_intent_unexpected_state", "payment_method")
      : show(account, params)(begin(account, draft))
  }
  const method = usableMethod(account, methodId, draft)
  if (!isMethod(method)) return method
  const ready: IntentRecord = { ...draft, status: "requires_confirmation", paymentMethod: method.id }
  if (!confirm) return show(account, params)(begin(account, ready))
  return needsReturnUrl(ready, params) ?? attempt(account, begin(account, ready), method, attemptOptions(account, params))
}

const found = (
  account: Account,
  id: string,
  act: (intent: IntentRecord) => Answer
): Answer => {
  const intent = account.intents.get(id)
  return intent === undefined ? missing("payment_intent", id, "intent", true) : act(intent)
}

const retrieve = (account: Account, params: Params, id: string): Answer => found(account, id, show(account, params))

const confirm = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (intent) => {
    if (intent.status === "succeeded") {
      return refuse(
        "You cannot confirm this PaymentIntent because it has already succeeded after being previously confirmed.",
        "payment_intent_unexpected_state",
        undefined,
        intent
      )
    }
    if (!confirmable.includes(intent.status)) {
      return refuse(
        `You cannot confirm this PaymentIntent because it has a status of ${intent.status}. Only a PaymentIntent with one of the following statuses may be confirmed: requires_confirmation, requires_action.`,
        "payment_intent_unexpected_state",
        undefined,
        intent
      )
    }
    const named = text(params, "payment_method") ?? intent.paymentMethod
    if (named === null) {
      return refuse(missingMethodMessage, "payment_intent_unexpected_state", "payment_method", intent)
    }
    const refused = needsReturnUrl(intent, params) ?? checkCustomer(account, intent.customer)
    if (refused !== undefined) return refused
    const method = usableMethod(account, named, intent)
    return isMethod(method) ? attempt(account, intent, method, attemptOptions(account, params)) : method
  })

const cancel = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (intent) => {
    if (!confirmable.includes(intent.status)) {
      return refuse(
        `You cannot cancel this PaymentIntent because it has a status of ${intent.status}. Only a PaymentIntent with one of the following statuses may be canceled: requires_payment_method, requires_capture, requires_confirmation, requires_action, processing.`,
        "payment_intent_unexpected_state",
        undefined,
        intent
      )
    }
    if (intent.invoice !== null) {
      return refuse(
        "You cannot cancel this PaymentIntent because it was created by an Invoice. You can void the Invoice instead.",
        "payment_intent_unexpected_state",
        undefined,
        intent
      )
    }
    const canceled = account.intents.put<IntentRecord>({
      ...intent,
      status: "canceled",
      canceledAtS: account.nowS,
      cancellationReason: text(params, "cancellation_reason") ?? null
    })
    account.emit("payment_intent.canceled", () => render.paymentIntent(canceled))
    return show(account, params)(canceled)
  })

const update = (account: Account, params: Params, id: string): Answer =>
  found(account, id, (intent) => {
    const frozen = ["amount", "currency", "customer", "payment_method"].find((name) => params[name] !== undefined)
    if (frozen !== undefined && !confirmable.includes(intent.status)) {
      return refuse(
        `This PaymentIntent's ${frozen} could not be updated because it has a status of ${intent.status}. You may only update the ${frozen} of a PaymentIntent with one of the following statuses: ${confirmable.join(", ")}.`,
        "payment_intent_unexpected_state",
        frozen,
        intent
      )
    }
    const amountMinor = integer(params, "amount") ?? intent.amountMinor
    const currency = text(params, "currency")?.toLowerCase() ?? intent.currency
    const customer = text(params, "customer") ?? intent.customer
    const refused = checkTerms(account, amountMinor, currency) ?? checkCustomer(account, customer)
    if (refused !== undefined) return refused
    if (intent.customer !== null && customer !== intent.customer) {
      return refuse("The customer of a PaymentIntent cannot be changed.", "payment_intent_unexpected_state", "customer", intent)
    }
    const changed: IntentRecord = {
      ...intent,
      amountMinor,
      currency,
      customer,
      description: textOr(params, "description", intent.description),
      receiptEmail: textOr(params, "receipt_email", intent.receiptEmail),
      statementDescriptor: textOr(params, "statement_descriptor", intent.statementDescriptor),
      statementDescriptorSuffix: textOr(params, "statement_descriptor_suffix", intent.statementDescriptorSuffix),
      transferGroup: textOr(params, "transfer_group", intent.transferGroup),
      metadata: mergeMetadata(intent.metadata, params)
    }
    const named = text(params, "payment_method")
    if (named === undefined) return show(account, params)(account.intents.put(changed))
    const method = usableMethod(account, named, changed)
    return isMethod(method)
      ? show(account, params)(
        account.intents.put({ ...changed, paymentMethod: method.id, status: "requires_confirmation" })
      )
      : method
  })

const list = (account: Account, params: Params): Answer =>
  page(account.intents, params, {
    url: "/v1/payment_intents",
    what: "payment_intent",
    show: (intent) => render.paymentIntent(intent)
  })

/** The endpoints of this resource. */
export const routes: ReadonlyArray<Route> = [
  { method: "POST", path: "payment_intents", rules: createRules, handler: create },
  { method: "GET", path: "payment_intents", rules: listRules, handler: list },
  { method: "GET", path: "payment_intents/:id", rules: retrieveRules, handler: retrieve },
  { method: "POST", path: "payment_intents/:id", rules: updateRules, handler: update },
  { method: "POST", path: "payment_intents/:id/confirm", rules: confirmRules, handler: confirm },
  { method: "POST", path: "payment_intents/:id/cancel", rules: cancelRules, handler: cancel }
]
