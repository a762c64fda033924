/**
 * What a seed stands for: who is to be charged, in what kind of world, and what goes wrong. A scenario is plain data, so
 * that a failure can be printed, repeated, and made smaller by leaving faults out.
 */
import { type FaultPlace, faultPlaces } from "@purser/core"
import type { Fault as StripeFault, FaultAction, WebhookFault } from "@purser/stripe-sim"
import { besideFaults, besideOf, type BesidePlan } from "./BesidePlan.ts"
import { type PlannedCap, roomOf, scopesOf } from "./Caps.ts"
import { type Rng, rngOf } from "./Rng.ts"
import { type RunFault, runFaultsOf, type RunPlan, runPlanOf } from "./RunPlan.ts"

/** One obligation. Times are milliseconds from the beginning of the world. */
export interface PlannedCharge {
  readonly customerId: string
  readonly item: string | undefined
  readonly stripeCustomerId: string
  readonly amountMinor: number
  /** Which of the world's caps it counts under. */
  readonly cap: number
  /** `null`: the customer's default one. */
  readonly paymentMethod: string | null
  /** Who asks for it, and when. */
  readonly asked: ReadonlyArray<{ readonly client: number; readonly atMs: number }>
  /** Who asks does not ask again, whatever comes back. */
  readonly once: boolean
}

/** Something that goes wrong. `nth` counts the events of its kind from the beginning of the world. */
export type SimFault =
  | { readonly kind: "store"; readonly nth: number; readonly how: "down" | "doubt" | "slow"; readonly ms: number }
  | { readonly kind: "storeAway"; readonly atMs: number; readonly forMs: number; readonly doubt: boolean }
  /** The database undoes the statement, and again when it is sent anew, `times` times in all (40001). */
  | { readonly kind: "serialization"; readonly nth: number; readonly times: number }
  /**
   * The database's server dies, and its standby takes over. The first `underWay` calls that meet it were carried out, without an answer;
   * who stood still meanwhile finds only afterwards that the connection leads nowhere.
   */
  | { readonly kind: "failover"; readonly atMs: number; readonly forMs: number; readonly underWay: number }
  | { readonly kind: "stripe"; readonly fault: StripeFault }
  | { readonly kind: "stripeAway"; readonly atMs: number; readonly forMs: number }
  | { readonly kind: "message"; readonly direction: "request" | "reply"; readonly nth: number; readonly fate: "lose" | "repeat" | "delay" | "astray"; readonly ms: number }
  | { readonly kind: "partition"; readonly atMs: number; readonly forMs: number; readonly client: number }
  | { readonly kind: "clientRestart"; readonly atMs: number; readonly client: number }
  | { readonly kind: "kill"; readonly place: FaultPlace; readonly nth: number; readonly downMs: number }
  /** With `retried` a person has all declined charges tried again, so long after the process stood still. */
  | {
    readonly kind: "freeze"
    readonly place: FaultPlace
    readonly nth: number
    readonly forMs: number
    readonly retried?: { readonly afterMs: number; readonly paymentMethod: string | null }
  }
  | { readonly kind: "stop"; readonly atMs: number; readonly worker: number; readonly downMs: number }
  | { readonly kind: "night"; readonly atMs: number; readonly forMs: number }
  | { readonly kind: "cancelInDashboard"; readonly nth: number; readonly afterMs: number }
  /** A process beside the workers, at its `nth` step to the world outside or back. */
  | { readonly kind: "office"; readonly office: string; readonly nth: number; readonly how: "kill" | "freeze"; readonly ms: number }
  | { readonly kind: "webhook"; readonly fault: WebhookFault }
  | { readonly kind: "retryByPerson"; readonly atMs: number; readonly paymentMethod: string | null }
  | RunFault

/** A world to be run. */
export interface Scenario {
  readonly seed: string
  readonly gateway: "payment_intents" | "charges" | "invoices"
  /** Off: Stripe's keys protect nothing. */
  readonly idempotency: boolean
  readonly rateLimited: boolean
  readonly workers: number
  readonly clients: number
  readonly charges: ReadonlyArray<PlannedCharge>
  readonly caps: ReadonlyArray<PlannedCap>
  /** The billing run that plans the charges; in worlds without one clients alone ask for them. */
  readonly run: RunPlan | undefined
  readonly outageAfter: number
  /** Ledger and cap are one store, where a first claim takes its room in the same act. */
  readonly oneStore: boolean
  /** What goes on beside the charging. */
  readonly beside: BesidePlan
  readonly faults: ReadonlyArray<SimFault>
}

const minute = 60_000
const hour = 60 * minute
/** Faults begin within this time. */
export const stormMs = 6 * minute

const cards = ["pm_card_visa", "pm_card_visa", "pm_card_visa", "pm_card_visa_chargeDeclinedInsufficientFunds", "pm_card_authenticationRequired"] as const

const chargesOf = (rng: Rng, gateway: Scenario["gateway"], clients: number): ReadonlyArray<PlannedCharge> => {
  const methods: ReadonlyArray<string | null> = gateway === "payment_intents" ? [...cards, null, "pm_usBankAccount_success"] : [...cards, null]
  const allGood = rng.chance(0.4)
  return Array.from({ length: rng.between(1, 5) }, (_, index) => {
    const customer = rng.between(1, 3)
    const asked = Array.from({ length: rng.chance(0.4) ? 2 : 1 }, () => ({ client: rng.between(0, clients - 1), atMs: rng.between(0, rng.pick([50, 2 * minute])) }))
    return {
      customerId: `cust_${customer}`,
      item: index === 0 ? undefined : `item_${index}`,
      stripeCustomerId: `cus_${customer}`,
      // Few amounts, so that charges of one customer look alike.
      amountMinor: rng.pick([1999, 1999, 500, 4200]),
      cap: 0,
      paymentMethod: allGood ? "pm_card_visa" : rng.pick(methods),
      asked,
      once: rng.chance(0.25)
    }
  })
}

/** Charges of one batch, mixed under the caps. A bank's debit is in dollars. */
const underCaps = (seed: string, scopes: ReturnType<typeof scopesOf>, charges: ReadonlyArray<PlannedCharge>): ReadonlyArray<PlannedCharge> => {
  if (scopes.length === 1) return charges
  const rng = rngOf(seed).branch("under caps")
  return charges.map((charge) => {
    const cap = rng.between(0, scopes.length - 1)
    const isDebit = charge.paymentMethod?.startsWith("pm_usBankAccount") === true
    return { ...charge, cap, paymentMethod: isDebit && scopes[cap]!.currency !== "usd" ? "pm_card_visa" : charge.paymentMethod }
  })
}

/** Where webhooks are taken, one charge is often a bank debit, whose end nobody but they can tell in time. */
const withDebit = (rng: Rng, charges: ReadonlyArray<PlannedCharge>): ReadonlyArray<PlannedCharge> => {
  const one = rng.between(0, charges.length - 1)
  const paymentMethod = rng.pick(["pm_usBankAccount_success", "pm_usBankAccount_success", "pm_usBankAccount_insufficientFunds", null])
  return paymentMethod === null ? charges : charges.with(one, { ...charges[one]!, paymentMethod })
}

/** Charges with which what goes on beside them has something to do. */
const dueOf = (seed: string, charges: ReadonlyArray<PlannedCharge>, { dunning, hooks }: BesidePlan, gateway: Scenario["gateway"]): ReadonlyArray<PlannedCharge> => {
  const withDebits = hooks === undefined || gateway !== "payment_intents" ? charges : withDebit(rngOf(seed).branch("debit"), charges)
  if (dunning === undefined) return withDebits
  const one = rngOf(seed).branch("decline").between(0, charges.length - 1)
  return withDebits.with(one, { ...withDebits[one]!, paymentMethod: "pm_card_visa_chargeDeclinedInsufficientFunds" })
}

/** What leaves Stripe in doubt for longer than it keeps keys is the open case of one-call charges: not for them. */
const stripeAction = (rng: Rng, gateway: Scenario["gateway"]): FaultAction => {
  const at = rng.pick(["before", "during", "after"] as const)
  const effect = rng.pick(["none", "done"] as const)
  // Stripe itself holds a key and an object for a moment; a proxy or a suspended machine may hold a request for days.
  const delays = gateway === "charges" || at === "during" ? [300, 8000, 40_000] : [300, 8000, 40_000, 10 * minute, 25 * hour]
  switch (rng.between(0, 9)) {
    case 0:
    case 1:
      return { kind: "delay", at, delayMs: rng.pick(delays) }
    case 2:
    case 3:
      return { kind: "reset", at: rng.pick(["before", "after"] as const) }
    case 4:
      return rng.pick([{ kind: "stall" }, { kind: "truncate" }] as const)
    case 5:
      return { kind: "serverError", effect, stored: rng.chance(0.5) }
    case 6:
      return gateway === "charges" ? { kind: "serverError", effect, stored: true } : { kind: "serverError", effect: "later", stored: rng.chance(0.5), laterMs: rng.pick([5000, 5 * minute, 25 * hour]) }
    case 7:
      return rng.pick([{ kind: "rateLimited", reason: "endpoint-rate" }, { kind: "lockTimeout" }, { kind: "keyInUse" }] as const)
    case 8:
      return { kind: "badGateway", effect }
    default:
      return { kind: "foreignJson", status: rng.pick([200, 403, 404, 500]), effect }
  }
}

const paths: Record<Scenario["gateway"], ReadonlyArray<string>> = {
  payment_intents: ["/v1/payment_intents", "/v1/payment_intents/*/confirm", "/v1/payment_intents/*/confirm", "/v1/**"],
  charges: ["/v1/charges", "/v1/charges", "/v1/**"],
  invoices: ["/v1/invoices", "/v1/invoices/*/pay", "/v1/invoices/*/pay", "/v1/invoices/*/finalize", "/v1/**"]
}

type World = Pick<Scenario, "gateway" | "workers" | "clients">

/** Kinds of faults with their weights. */
const kinds: ReadonlyArray<readonly [weight: number, make: (rng: Rng, world: World) => SimFault]> = [
  [2, (rng) => ({ kind: "store", nth: rng.between(1, 40), how: rng.pick(["down", "doubt", "doubt", "slow"] as const), ms: rng.pick([200, 5000, 20_000]) })],
  [1, (rng) => ({ kind: "storeAway", atMs: timeOf(rng), forMs: rng.pick([500, 10_000, minute]), doubt: rng.chance(0.3) })],
  [5, (rng, { gateway }) => {
    const action = stripeAction(rng, gateway)
    const times = action.kind === "delay" ? 1 : rng.pick([1, 1, 1, 2, 4, 9])
    return { kind: "stripe", fault: { match: { path: rng.pick(paths[gateway]), nth: rng.between(1, 6), times }, action } }
  }],
  [1, (rng) => ({ kind: "stripeAway", atMs: timeOf(rng), forMs: rng.pick([3000, minute, 4 * minute]) })],
  [2, (rng) => ({
    kind: "message",
    direction: rng.pick(["request", "reply"] as const),
    nth: rng.between(1, 12),
    fate: rng.pick(["lose", "repeat", "delay", "astray"] as const),
    ms: rng.pick([100, 5000, 20_000])
  })],
  [1, (rng, { clients }) => ({ kind: "partition", atMs: timeOf(rng), forMs: downOf(rng), client: rng.between(0, clients - 1) })],
  [0.5, (rng, { clients }) => ({ kind: "clientRestart", atMs: timeOf(rng), client: rng.between(0, clients - 1) })],
  [0.5, (rng, { workers }) => ({ kind: "stop", atMs: timeOf(rng), worker: rng.between(0, workers - 1), downMs: downOf(rng) })],
  [2, (rng) => ({ kind: "kill", place: rng.pick(faultPlaces), nth: rng.between(1, 5), downMs: downOf(rng) })],
  [2, (rng) => ({ kind: "freeze", place: rng.pick(faultPlaces), nth: rng.between(1, 5), forMs: rng.pick([2000, 20_000, 2 * minute]) })],
  [0.4, (rng) => ({ kind: "night", atMs: timeOf(rng), forMs: 25 * hour })],
  [1, (rng, { gateway }) => gateway === "payment_intents"
    ? { kind: "cancelInDashboard", nth: rng.between(1, 3), afterMs: rng.pick([0, 100, 20_000]) }
    : { kind: "stripeAway", atMs: timeOf(rng), forMs: rng.pick([3000, minute]) }],
  [1, (rng) => ({ kind: "retryByPerson", atMs: rng.between(minute, 10 * minute), paymentMethod: rng.pick(["pm_card_visa", "pm_card_visa_chargeDeclinedInsufficientFunds", null]) })]
]
const weights = kinds.reduce((sum, [weight]) => sum + weight, 0)
const timeOf = (rng: Rng) => rng.between(0, rng.pick([2000, stormMs]))
const downOf = (rng: Rng) => rng.pick([1000, 20_000, 2 * minute])

const faultOf = (rng: Rng, world: World): SimFault => {
  let left = rng.next() * weights
  for (const [weight, make] of kinds) if ((left -= weight) < 0) return make(rng, world)
  throw new Error("Bug: the weights of the faults do not add up")
}

/** What was thought of after worlds had become known by their seeds comes from branches of its own, so that it moves nothing else. */
const addedFaults = (seed: string): ReadonlyArray<SimFault> => {
  const store = rngOf(seed).branch("store")
  const late = rngOf(seed).branch("late release")
  return [
    ...(store.chance(0.3)
      ? Array.from({ length: store.between(1, 3) }, (): SimFault => ({ kind: "serialization", nth: store.between(1, 40), times: store.pick([1, 3, 8, 9, 20]) }))
      : []),
    ...(store.chance(0.15) ? [{ kind: "failover", atMs: timeOf(store), forMs: store.pick([500, 10_000, minute]), underWay: store.between(0, 3) } as const] : []),
    ...(late.chance(0.15)
      ? [{
        kind: "freeze",
        place: late.pick(["after-confirm", "after-settle", "after-settle"] as const),
        nth: late.between(1, 3),
        forMs: late.pick([20_000, 2 * minute]),
        retried: { afterMs: late.pick([100, 5000]), paymentMethod: late.pick(["pm_card_visa", "pm_card_visa", null]) }
      } as const]
      : [])
  ]
}

/** Where refunds are made, what happens to them. A refund is one call, so that it meets what one-call charges do. */
const refundFaults = (rng: Rng): ReadonlyArray<SimFault> =>
  Array.from({ length: rng.between(0, 3) }, (): SimFault => ({
    kind: "stripe",
    fault: { match: { path: "/v1/refunds", nth: rng.between(1, 4), times: rng.pick([1, 1, 2, 4]) }, action: stripeAction(rng, "charges") }
  }))

/** What would leave a refund in doubt for longer than Stripe keeps its key happens to other calls. */
const sparingRefunds = (faults: ReadonlyArray<SimFault>, gateway: Scenario["gateway"]): ReadonlyArray<SimFault> =>
  faults.map((fault) => {
    if (fault.kind !== "stripe" || fault.fault.match?.path !== "/v1/**") return fault
    const { action } = fault.fault
    const isLong = (action.kind === "delay" && action.delayMs > 40_000) || (action.kind === "serverError" && action.effect === "later")
    return isLong ? { ...fault, fault: { ...fault.fault, match: { ...fault.fault.match, path: paths[gateway][0]! } } } : fault
  })

/**
 * A call that is late beyond its client's patience is held back from a second one-call charge by its key alone. Where one is late, Stripe
 * keeps the key of every charge that it makes: that it may not is the open case of such charges, and that of refunds.
 */
const withKeysKept = (faults: ReadonlyArray<SimFault>): ReadonlyArray<SimFault> => {
  const isLate = faults.some((fault) => fault.kind === "stripe" && fault.fault.action.kind === "delay" && fault.fault.action.delayMs > 30_000)
  return !isLate ? faults : faults.map((fault) => {
    if (fault.kind !== "stripe" || fault.fault.action.kind !== "serverError" || fault.fault.action.effect !== "done") return fault
    return { ...fault, fault: { ...fault.fault, action: { ...fault.fault.action, stored: true } } }
  })
}

/** Whether a person has declined charges tried again. */
export const isRetried = ({ faults }: Pick<Scenario, "faults">): boolean => faults.some((fault) => fault.kind === "retryByPerson" || (fault.kind === "freeze" && fault.retried !== undefined))

/** The processes of those who do so. */
export const peopleNames = ["person-1", "person-2"] as const

/** What happens to their processes. */
const peopleFaults = (rng: Rng): ReadonlyArray<SimFault> =>
  Array.from({ length: rng.between(0, 3) }, (): SimFault => ({
    kind: "office",
    office: rng.pick(peopleNames),
    nth: rng.between(1, 30),
    how: rng.pick(["freeze", "freeze", "kill"] as const),
    ms: rng.pick([100, 5000, 20_000, 2 * minute])
  }))

/** The world of a seed. */
export const scenarioOf = (seed: string): Scenario => {
  const rng = rngOf(seed).branch("scenario")
  const gateway = rng.pick(["payment_intents", "payment_intents", "payment_intents", "invoices", "charges"] as const)
  const world = { gateway, workers: rng.between(2, 3), clients: rng.between(2, 3) }
  const asked = chargesOf(rng.branch("charges"), gateway, world.clients)
  const faults = rng.branch("faults")
  const stormy = rng.pick([2, 5, 12])
  const everyFault = [...Array.from({ length: faults.between(1, stormy) }, (_, index) => faultOf(faults.branch(String(index)), world)), ...addedFaults(seed)]
  const idempotency = gateway !== "payment_intents" || rng.chance(0.75)
  const beside = besideOf(seed, { charges: asked, idempotency })
  const due = dueOf(seed, asked, beside, gateway)
  const scopes = scopesOf(seed, beside.reconcile !== undefined)
  const charges = underCaps(seed, scopes, due)
  if (isRetried({ faults: everyFault })) everyFault.push(...peopleFaults(rngOf(seed).branch("people")))
  everyFault.push(...besideFaults(seed, beside), ...(beside.refunds === undefined ? [] : refundFaults(rngOf(seed).branch("refund faults"))))
  const drawn = {
    rateLimited: rng.chance(0.1),
    caps: scopes.map((scope, cap) => ({ ...scope, capMinor: roomOf(cap === 0 ? rng : rngOf(seed).branch(`cap ${cap}`), charges, cap) })),
    outageAfter: rng.pick([3, 20])
  }
  // The books of runs are not among what is saved and restored.
  const run = rng.chance(0.5) ? runPlanOf(seed, beside.restore === undefined) : undefined
  if (run !== undefined) everyFault.push(...runFaultsOf(seed, run))
  return {
    seed,
    ...world,
    ...drawn,
    idempotency,
    beside,
    charges,
    run,
    oneStore: rngOf(seed).branch("one store").chance(0.5),
    faults: gateway === "charges" || beside.refunds !== undefined ? withKeysKept(beside.refunds === undefined ? everyFault : sparingRefunds(everyFault, gateway)) : everyFault
  }
}
