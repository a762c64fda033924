/**
 * Who may call what: the key, the account that it is for, and the permissions of a restricted key.
 *
 * Any test or live shaped key opens the account, as a Bearer token or as the user of Basic authentication; keys that
 * contain `INVALID` and everything that is no key do not. A restricted key that was given permissions has those and no
 * others.
 */
import type { RestrictedKey } from "../RestrictedKey.ts"
import type { Account } from "./Account.ts"
import { type Answer, fail } from "./answer.ts"
import type { Call } from "./route.ts"

const refuse = (message: string): Answer => fail({ status: 401, saved: false, type: "invalid_request_error", message })

const forbid = (message: string, code?: string): Answer =>
  fail({ status: 403, saved: false, type: "invalid_request_error", message, code })

const keyOf = (authorization: string): string => {
  if (authorization.startsWith("Bearer ")) return authorization.slice(7).trim()
  if (!authorization.startsWith("Basic ")) return ""
  const [user = ""] = Buffer.from(authorization.slice(6), "base64").toString("utf8").split(":")
  return user
}

const hidden = (key: string): string => `${key.slice(0, 8)}***${key.length > 12 ? key.slice(-4) : ""}`

/** The permission that a resource asks for, by the first part of its path. */
const permissions: Readonly<Record<string, string>> = {
  account: "accounts_kyc_basic",
  balance: "balance",
  charges: "charge",
  customers: "customer",
  disputes: "dispute",
  events: "event",
  invoice_payments: "invoice",
  invoiceitems: "invoice",
  invoices: "invoice",
  payment_intents: "payment_intent",
  payment_methods: "payment_method",
  refunds: "charge",
  test_helpers: "billing_clock",
  webhook_endpoints: "webhook"
}

/** What the key lacks for this call, or undefined. */
const missingFor = (key: RestrictedKey, call: Call): string | undefined => {
  const resource = call.path.split("/")[2] ?? ""
  const name = permissions[resource] ?? resource.replace(/s$/, "")
  const table = call.stripeAccount === undefined ? key.permissions : key.connect ?? {}
  const granted = table[name]
  const wanted = call.method === "GET" ? "read" : "write"
  return granted === "write" || granted === wanted ? undefined : `rak_${name}_${wanted}`
}

/** What the gate looks at. */
export interface Gate {
  readonly account: Account
  readonly restrictedKeys: ReadonlyMap<string, RestrictedKey>
  readonly accountOf: (connectedId: string | undefined) => Account | undefined
}

/** The account that the call is for, or the 401 or 403 that keeps it out. */
export const admit = (gate: Gate, call: Call): Account | Answer => {
  if (call.authorization === undefined) {
    return refuse(
      "You did not provide an API key. You need to provide your API key in the Authorization header, using Bearer auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY'). See https://stripe.com/docs/api#authentication for details, or we can help at https://support.stripe.com/."
    )
  }
  const key = keyOf(call.authorization)
  if (!/^(sk|rk)_(test|live)_\w+$/.test(key) || key.includes("INVALID")) {
    return refuse(`Invalid API Key provided: ${hidden(key)}`)
  }
  const account = gate.accountOf(call.stripeAccount)
  if (account === undefined) {
    return forbid(
      `The provided key '${hidden(key)}' does not have access to account '${call.stripeAccount}' (or that account does not exist). Application access may have been revoked.`,
      "account_invalid"
    )
  }
  const restricted = gate.restrictedKeys.get(key)
  const lacking = restricted === undefined ? undefined : missingFor(restricted, call)
  return lacking === undefined
    ? account
    : forbid(
      `The provided key '${hidden(key)}' does not have the required permissions for this endpoint on account '${account.id}'. Having the '${lacking}' permission would allow this request to continue.`
    )
}
