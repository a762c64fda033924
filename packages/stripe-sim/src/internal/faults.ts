/**
 * The faults in force and the plan they make for one request.
 */
import type { Fault, FaultAction, FaultMatch } from "../Fault.ts"
import type { Account } from "./Account.ts"
import { inHash, text } from "./params.ts"
import type { MetadataRecord } from "./records.ts"
import type { Call } from "./route.ts"

interface Rule {
  readonly match: FaultMatch
  readonly action: FaultAction
  readonly path: RegExp | undefined
  readonly key: RegExp | undefined
  seen: number
}

/** What happens to one request: the delays, and at most one other fault. */
export interface Plan {
  readonly beforeMs: number
  readonly duringMs: number
  readonly afterMs: number
  readonly verdict: Exclude<FaultAction, { readonly kind: "delay" }> | undefined
  readonly kinds: ReadonlyArray<string>
}

const calm: Plan = { beforeMs: 0, duringMs: 0, afterMs: 0, verdict: undefined, kinds: [] }

const glob = (pattern: string | undefined): RegExp | undefined =>
  pattern === undefined
    ? undefined
    : new RegExp(
      `^${
        pattern.split("**").map((part) =>
          part.split("*").map((text) => text.replace(/[\\^$.+?()[\]{}|]/g, "\\$&")).join("[^/]*")
        ).join(".*")
      }$`
    )

/** The object in the path, where it is one that belongs to a customer. */
const objectOf = (account: Account, path: string): { readonly customer: string | null; readonly metadata: MetadataRecord } | undefined => {
  const [, , resource, id = ""] = path.split("/")
  if (resource === "payment_intents") return account.intents.get(id)
  if (resource === "invoices") return account.invoices.get(id)
  return resource === "charges" ? account.charges.get(id) : undefined
}

const applies = (account: Account, rule: Rule, call: Call): boolean => {
  const { customer, metadata, method } = rule.match
  if (method !== undefined && method !== call.method) return false
  if (rule.path !== undefined && !rule.path.test(call.path)) return false
  if (rule.key !== undefined && (call.key === undefined || !rule.key.test(call.key))) return false
  if (customer === undefined && metadata === undefined) return true
  const object = objectOf(account, call.path)
  if (customer !== undefined && customer !== (text(call.params, "customer") ?? object?.customer)) return false
  return Object.entries(metadata ?? {}).every(([name, value]) =>
    (inHash(call.params, "metadata", name) ?? object?.metadata[name]) === value
  )
}

const fires = (rule: Rule): boolean => {
  rule.seen++
  const first = rule.match.nth ?? 1
  const times = rule.match.times ?? 1
  return rule.seen >= first && (times === "always" || rule.seen < first + times)
}

/** The faults of one simulator. */
export class FaultBook {
  private rules: Array<Rule> = []

  add(fault: Fault): void {
    const match = fault.match ?? {}
    this.rules.push({ match, action: fault.action, path: glob(match.path), key: glob(match.idempotencyKey), seen: 0 })
  }
  clear(): void {
    this.rules = []
  }
  list(): ReadonlyArray<Fault & { readonly seen: number }> {
    return this.rules.map(({ action, match, seen }) => ({ match, action, seen }))
  }
  /** Counts the request in every rule it matches and says what happens to it. */
  plan(account: Account, call: Call): Plan {
    if (this.rules.length === 0) return calm
    const actions = this.rules
      .filter((rule) => applies(account, rule, call) && fires(rule))
      .map((rule) => rule.action)
    if (actions.length === 0) return calm
    const delay = (at: "before" | "during" | "after") =>
      actions.reduce((sum, action) => action.kind === "delay" && action.at === at ? sum + action.delayMs : sum, 0)
    return {
      beforeMs: delay("before"),
      duringMs: delay("during"),
      afterMs: delay("after"),
      verdict: actions.find((action) => action.kind !== "delay"),
      kinds: actions.map((action) => action.kind)
    }
  }
}
