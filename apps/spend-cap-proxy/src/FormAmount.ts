/**
 * What a form asks for, by one strict reading. Stripe's own parser is not ours, so that every form that two parsers could
 * read in two ways is refused: an amount that is repeated, bracketed, spelled otherwise or no plain integer, parameters in
 * the query, other content types and encodings.
 */
import { Result } from "effect"
import { createHash } from "node:crypto"
import { periodOf } from "./internal/periodOf.ts"
import { vaultKeyPattern } from "./VaultKey.ts"
import type { Route } from "./RoutePolicy.ts"

/** The terms of a call that moves money. Amounts in minor units; null where the form does not say. */
export interface FormTerms {
  readonly amountMinor: number | null
  readonly currency: string | null
  readonly customer: string | null
  /** The billing period in the metadata, in its one spelling. */
  readonly period: string | null
  /** The connected account that is charged, as the headers name it; "" for the key's own. */
  readonly account: string
  /** Equal for the same parameters in any order, on the same route and account. */
  readonly fingerprint: string
}

/** Why a form is not read: for a 400 in Stripe's shape. */
export interface FormProblem {
  readonly param: string | null
  readonly code: string
  readonly message: string
}

/** What else counts as a part of the call. */
export interface FormContext {
  readonly route: Route
  readonly method: string
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
}

type Pair = readonly [name: string, value: string]

const watched = new Set(["amount", "currency", "customer", "customer_account", "confirm", "payment_intent", "charge"])

const problem = (param: string | null, code: string, message: string) => Result.fail<FormProblem>({ param, code, message })

const decode = (text: string) => Result.try(() => decodeURIComponent(text.replaceAll("+", " ")))

const readPairs = (text: string): Result.Result<ReadonlyArray<Pair>, FormProblem> => {
  const pairs: Array<Pair> = []
  for (const piece of text.split("&")) {
    if (piece === "") continue
    const at = piece.indexOf("=")
    const name = decode(at === -1 ? piece : piece.slice(0, at))
    const value = decode(at === -1 ? "" : piece.slice(at + 1))
    if (Result.isFailure(name) || Result.isFailure(value)) return problem(null, "form_invalid", "The form is not URL-encoded UTF-8.")
    // No database keeps a zero byte, and parsers that end a text there read another name.
    if (name.success.includes("\0") || value.success.includes("\0")) return problem(null, "form_invalid", "The form holds a zero byte.")
    pairs.push([name.success, value.success])
  }
  return Result.succeed(pairs)
}

/** The name that some parser might take this name for. */
const looksLike = (name: string): string =>
  (name.replace(/^[[\]]+/, "").split(/[[\]]/)[0] ?? "").normalize("NFKC").toLowerCase().replaceAll(/[^a-z0-9_]/g, "")

const oddName = (pairs: ReadonlyArray<Pair>, route: Route): FormProblem | undefined => {
  const seen = new Set<string>()
  for (const [name] of pairs) {
    const meant = looksLike(name)
    const isAmount = meant.startsWith("amount") && meant !== "amount_details"
    if (!watched.has(meant) && !isAmount) continue
    if (isAmount && (meant !== "amount" || route.kind === "confirm")) {
      return { param: meant, code: "parameter_not_allowed", message: `The parameter ${meant} is not allowed here by the spend-cap proxy.` }
    }
    if (name !== meant) {
      return { param: meant, code: "parameter_odd", message: `The parameter ${meant} must be given once, by its plain name.` }
    }
    if (seen.has(name)) return { param: name, code: "parameter_repeated", message: `The parameter ${name} is given more than once.` }
    seen.add(name)
  }
}

/** The longest name of a customer or a currency; Stripe's own have some twenty characters. */
const lengthMax = 255

const tooLong = (given: ReadonlyMap<string, string>): FormProblem | undefined => {
  for (const param of ["currency", "customer", "customer_account"]) {
    if ((given.get(param) ?? "").length > lengthMax) {
      return { param, code: "parameter_too_long", message: `The parameter ${param} has more than ${lengthMax} characters.` }
    }
  }
}

const periodName = "metadata[billing_period]"

const amountPattern = /^[1-9][0-9]{0,11}$/

/** Reads the body of a call that moves money. */
export const readForm = (body: Uint8Array, { headers, method, route }: FormContext): Result.Result<FormTerms, FormProblem> => {
  if (route.query !== "") return problem(null, "query_not_allowed", "Parameters belong into the body of this call, not into its URL.")
  if (headers["content-encoding"] !== undefined) return problem(null, "form_encoded", "A compressed body is not read by the spend-cap proxy.")
  if (headers["x-http-method-override"] !== undefined) return problem(null, "method_override", "The method of a call cannot be overridden.")
  const type = String(headers["content-type"] ?? "")
  if (body.length > 0 && !/^application\/x-www-form-urlencoded *(?:; *charset=utf-8 *)?$/i.test(type)) {
    return problem(null, "form_type", "The body of this call must be application/x-www-form-urlencoded.")
  }
  const text = Buffer.from(body).toString("latin1")
  // Some parsers take a semicolon for an ampersand.
  if (text.includes(";") || /[^\x21-\x7e]/.test(text)) return problem(null, "form_invalid", "The form holds characters that must be URL-encoded.")
  if (vaultKeyPattern.test(text)) return problem(null, "form_invalid", "The form holds a vault key.")
  const read = readPairs(text)
  if (Result.isFailure(read)) return Result.fail(read.failure)
  const pairs = read.success
  const odd = oddName(pairs, route)
  if (odd !== undefined) return Result.fail(odd)
  const given = new Map(pairs)
  const long = tooLong(given)
  if (long !== undefined) return Result.fail(long)
  const amount = given.get("amount")
  if (route.kind !== "confirm" && (amount === undefined || !amountPattern.test(amount))) {
    return problem("amount", "parameter_invalid_integer", "The amount must be given as one plain positive integer of minor units.")
  }
  const customer = given.get("customer") ?? given.get("customer_account")
  if (given.has("customer") && given.has("customer_account")) return problem("customer", "parameter_odd", "Give one of customer and customer_account.")
  const sorted = pairs.map((pair, at) => ({ pair, at })).toSorted((a, b) => a.pair[0] < b.pair[0] ? -1 : a.pair[0] > b.pair[0] ? 1 : a.at - b.at)
  const periods = new Set(pairs.filter(([name]) => name === periodName).map(([, text]) => periodOf(text)))
  if (periods.size > 1) return problem(periodName, "parameter_repeated", `The parameter ${periodName} is given more than once.`)
  const account = [headers["stripe-account"], headers["stripe-context"]].filter((name) => name !== undefined).join(" ")
  if (account.length > lengthMax) return problem(null, "parameter_too_long", `The account has more than ${lengthMax} characters.`)
  const identity = [method, route.path, headers["stripe-account"] ?? null, headers["stripe-context"] ?? null, sorted.map(({ pair }) => pair)]
  return Result.succeed({
    amountMinor: amount === undefined ? null : Number(amount),
    currency: given.get("currency")?.toLowerCase() ?? null,
    account,
    customer: customer === undefined || customer === "" ? null : customer,
    period: [...periods][0] ?? null,
    fingerprint: createHash("sha256").update(JSON.stringify(identity)).digest("hex")
  })
}

/** Refuses every update of an intent that could change what it costs or whom it charges. */
export const readAdjustment = (body: Uint8Array, context: FormContext): Result.Result<void, FormProblem> => {
  const read = readForm(body, { ...context, route: { ...context.route, kind: "confirm" } })
  if (Result.isFailure(read)) return Result.fail(read.failure)
  return read.success.currency !== null || read.success.customer !== null || /(?:^|&)confirm=/.test(Buffer.from(body).toString("latin1"))
    ? problem(null, "parameter_not_allowed", "Through the spend-cap proxy an update may not change amount, currency or customer, and may not confirm.")
    : Result.succeed(undefined)
}
