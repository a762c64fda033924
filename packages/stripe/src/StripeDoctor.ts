/**
 * What the key may do, held against what Purser needs, and how far our clock is from Stripe's. It asks only what changes
 * nothing, and repeats nothing.
 */
import { Clock, Effect, Redacted } from "effect"
import type { Stripe } from "stripe"
import { probes } from "./internal/permissionProbes.ts"
import { problemOf } from "./internal/refusal.ts"
import type { StripeCallError } from "./StripeCallError.ts"
import { type StripeAnswer, StripeClient } from "./StripeClient.ts"
import type { GatewayName } from "./StripeGateway.ts"

/** What a key is used for. */
export type KeyUse = GatewayName | "refunds" | "webhooks" | "reconcile"

/** Access to a resource of restricted keys; writing includes reading. */
export type Access = "read" | "write"

const needs: Record<KeyUse, Readonly<Record<string, Access>>> = {
  payment_intents: { payment_intent: "write", customer: "read" },
  charges: { charge: "write", customer: "read" },
  invoices: { invoice: "write", payment_intent: "read", customer: "read" },
  refunds: { charge: "write" },
  webhooks: { payment_intent: "read", charge: "read", invoice: "read", dispute: "read" },
  reconcile: { payment_intent: "read", charge: "read", invoice: "read", dispute: "read", event: "read" }
}

/** The permissions that these uses need together. */
export const permissionsFor = (uses: ReadonlyArray<KeyUse>): ReadonlyMap<string, Access> => {
  const all = new Map<string, Access>()
  for (const use of uses) {
    for (const [resource, access] of Object.entries(needs[use])) {
      if (all.get(resource) !== "write") all.set(resource, access)
    }
  }
  return all
}

/** What was found about a key. Each entry is like `payment_intent write`. */
export interface KeyReport {
  /** An unrestricted key may do everything, so that nothing was asked. */
  readonly unrestricted: boolean
  /** Needed and refused. */
  readonly missing: ReadonlyArray<string>
  /** Granted and not needed. */
  readonly tooMany: ReadonlyArray<string>
  /** Needed, and the answer said neither yes nor no; with the answer. */
  readonly unclear: ReadonlyArray<string>
  /** Our clock less Stripe's, in milliseconds, exact to a second; `null` when Stripe did not tell the time. */
  readonly skewMs: number | null
}

type Verdict = "granted" | "refused" | { readonly unclear: string }

const verdictOf = (answer: StripeAnswer): Verdict => {
  const problem = problemOf(answer)
  if (answer.status === 200) return "granted"
  if (problem === undefined || answer.status >= 500 || answer.status === 429) return { unclear: `status ${answer.status}` }
  if (answer.status === 403) return "refused"
  if (answer.status === 401) return { unclear: "the key is not valid" }
  return /unrecognized request url/i.test(problem.message ?? "") ? { unclear: "no such endpoint" } : "granted"
}

/** Half the way there and back is not ours to know: the time in the middle is compared. */
const skewOf = (answer: StripeAnswer, beforeMs: number, afterMs: number): number | null => {
  const date = answer.headers["date"]
  const theirsMs = date === undefined ? Number.NaN : Date.parse(date)
  // The header counts whole seconds; half of one is as near as it gets.
  return Number.isNaN(theirsMs) ? null : Math.round((beforeMs + afterMs) / 2 - (theirsMs + 500))
}

/** Asks about the key of the client. Fails when Stripe does not answer at all. */
export const examineKey = Effect.fn("StripeDoctor.examineKey")(function*(
  key: Redacted.Redacted,
  uses: ReadonlyArray<KeyUse>
): Effect.fn.Return<KeyReport, StripeCallError, StripeClient> {
  const client = yield* StripeClient
  const needed = permissionsFor(uses)
  const beforeMs = yield* Clock.currentTimeMillis
  const first = yield* client.call("doctor", (stripe) => stripe.customers.retrieve("cus_NONE"))
  const skewMs = skewOf(first, beforeMs, yield* Clock.currentTimeMillis)
  const ask = (resource: string, access: Access, use: (stripe: Stripe) => PromiseLike<unknown>) =>
    Effect.map(client.call("doctor", use), (answer) => ({ resource, access, verdict: verdictOf(answer) }))

  if (first.status !== 401 && Redacted.value(key).startsWith("sk_")) {
    return { unrestricted: true, missing: [], tooMany: [], unclear: [], skewMs }
  }
  const found = yield* Effect.forEach(probes, ({ read, resource, write }) =>
    Effect.all([
      ...(read === undefined ? [] : [ask(resource, "read", read)]),
      ...(write === undefined ? [] : [ask(resource, "write", write)])
    ]), { concurrency: 4 })
  const missing: Array<string> = []
  const tooMany: Array<string> = []
  const unclear: Array<string> = []
  for (const { access, resource, verdict } of found.flat()) {
    const wanted = needed.get(resource)
    const isNeeded = wanted === "write" || wanted === access
    const name = `${resource} ${access}`
    if (verdict === "granted") {
      if (!isNeeded) tooMany.push(name)
    } else if (isNeeded && verdict === "refused") missing.push(name)
    else if (isNeeded && verdict !== "refused") unclear.push(`${name}: ${verdict.unclear}`)
  }
  // Who may write may read: one line is enough.
  const worst = (names: ReadonlyArray<string>) => names.filter((name) => !(name.endsWith(" read") && names.includes(name.replace(/ read$/, " write"))))
  return { unrestricted: false, missing: worst(missing), tooMany: worst(tooMany), unclear, skewMs }
})
