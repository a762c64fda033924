/**
 * What goes on in a world beside the charging: webhooks, reconciliation, refunds, dunning, a restored store. Plain data, as the
 * scenario is, and drawn from branches of its own, so that a world without any of it is what it was.
 */
import type { WebhookFault } from "@purser/stripe-sim"
import { type Rng, rngOf } from "./Rng.ts"
import type { Scenario, SimFault } from "./Scenario.ts"

/** Events of Stripe's that are sent to processes that take them. */
export interface HooksPlan {
  readonly offices: number
  /** How often sweeps look at what settles later; where it is long, only a webhook brings the news in time. */
  readonly pollMs: number
  /** Somebody else posts events: signed with a secret of his own, not at all, or one of Stripe's that he has kept. */
  readonly forgeries: ReadonlyArray<{ readonly atMs: number; readonly how: "wrong" | "unsigned" | "kept" }>
}

/** The command that compares ledger and account, beside living workers. */
export interface ReconcilePlan {
  readonly runs: ReadonlyArray<{ readonly atMs: number; readonly dryRun: boolean; readonly orphanAgeMs: number }>
  /** Unpaid objects that bear a charge's key and that no row names, as a process leaves them that dies at the wrong moment. */
  readonly strays: ReadonlyArray<{ readonly charge: number; readonly atMs: number }>
}

/** A refund that an operator wants. The same id is the same refund, whoever asks for it. */
export interface RefundWish {
  readonly charge: number
  readonly refundId: string
  /** Of a hundred; null is all that is left. */
  readonly percent: number | null
  readonly atMs: number
  readonly office: number
}

/** What policy says about declined charges, and what people do about them. */
export interface DunningPlan {
  readonly waitsMs: ReadonlyArray<number>
  readonly graceMs: number
  readonly final: "cancel" | "keep"
  /** A customer brings another method; counted from the end of the storm, or within it. */
  readonly offers: ReadonlyArray<{ readonly customer: number; readonly atMs: number; readonly paymentMethod: string }>
  /** When the process that serves the cases dies, counted from the end of the storm. */
  readonly deaths: ReadonlyArray<{ readonly atMs: number; readonly downMs: number }>
}

/** The store goes back to how it was at `savedAtMs`. */
export interface RestorePlan {
  readonly savedAtMs: number
  readonly restoredAtMs: number
  /** How long everything stands still, from the loss to the first worker. */
  readonly downMs: number
  /** Whether the account is compared with the ledger before anything runs. */
  readonly reconciled: boolean
}

/** All of it; what is not there does not go on. */
export interface BesidePlan {
  readonly hooks?: HooksPlan
  readonly reconcile?: ReconcilePlan
  readonly refunds?: ReadonlyArray<RefundWish>
  readonly dunning?: DunningPlan
  readonly restore?: RestorePlan
}

const minute = 60_000
const hour = 60 * minute

const hooksPlan = (rng: Rng): HooksPlan => ({
  offices: rng.between(1, 2),
  pollMs: rng.pick([5 * minute, 3 * hour]),
  forgeries: Array.from({ length: rng.between(0, 4) }, () => ({
    atMs: rng.between(0, rng.pick([10_000, 12 * minute])),
    how: rng.pick(["wrong", "wrong", "unsigned", "kept"] as const)
  }))
})

const reconcilePlan = (rng: Rng, charges: number): ReconcilePlan => ({
  runs: Array.from({ length: rng.between(1, 3) }, () => ({
    atMs: rng.between(0, rng.pick([300, 20_000, 12 * minute])),
    dryRun: rng.chance(0.3),
    orphanAgeMs: rng.pick([0, 0, minute, hour])
  })),
  strays: Array.from({ length: rng.between(0, 3) }, () => ({ charge: rng.between(0, charges - 1), atMs: rng.between(0, rng.pick([5000, 6 * minute])) }))
})

const refundsPlan = (rng: Rng, charges: number): ReadonlyArray<RefundWish> =>
  Array.from({ length: rng.between(1, 3) }, (_, index) => ({
    charge: rng.between(0, charges - 1),
    refundId: rng.chance(0.3) ? "1" : `id_${index}`,
    percent: rng.pick([null, 30, 50, 60, 100]),
    atMs: rng.between(0, rng.pick([minute, 12 * minute]))
  })).flatMap((wish) => {
    // One id has one amount, and may be asked for twice, at once or not, at one place or at two.
    const first = { ...wish, percent: wish.refundId === "1" ? 50 : wish.percent, office: rng.between(0, 1) }
    return rng.chance(0.4) ? [first, { ...first, atMs: first.atMs + rng.pick([0, 0, 30, 20_000]), office: rng.between(0, 1) }] : [first]
  })

const dunningPlan = (rng: Rng): DunningPlan => ({
  waitsMs: rng.pick([[2 * minute, 20 * minute, 6 * hour], [minute, 24 * hour], [3 * hour, 15 * hour], []]),
  graceMs: rng.pick([hour, 10 * hour]),
  final: rng.pick(["cancel", "cancel", "keep"] as const),
  offers: Array.from({ length: rng.between(0, 2) }, () => ({
    customer: rng.between(1, 3),
    atMs: rng.between(0, rng.pick([10 * minute, 20 * hour])),
    paymentMethod: rng.pick(["pm_card_visa", "pm_card_visa", "pm_card_visa_chargeDeclinedInsufficientFunds"])
  })),
  deaths: Array.from({ length: rng.between(0, 3) }, () => ({ atMs: rng.between(0, 20 * hour), downMs: rng.pick([minute, 2 * hour]) }))
})

const restorePlan = (rng: Rng): RestorePlan => {
  const savedAtMs = rng.between(0, rng.pick([200, 200, 2000, minute]))
  return {
    savedAtMs,
    restoredAtMs: savedAtMs + rng.between(1, rng.pick([5000, 4 * minute])),
    downMs: rng.pick([minute, minute, 25 * hour]),
    reconciled: rng.chance(0.5)
  }
}

/** What goes on beside the charging in the world of a seed. */
export const besideOf = (seed: string, { charges, idempotency }: Pick<Scenario, "charges" | "idempotency">): BesidePlan => {
  const rng = (name: string) => rngOf(seed).branch(name)
  const share = rng("beside")
  const isDrawn = { hooks: share.chance(0.2), reconcile: share.chance(0.15), refunds: share.chance(0.15), dunning: share.chance(0.07), restore: share.chance(0.12) }
  // A refund is one call: between a call that is on its way and a second refund nothing stands but its key.
  const refunds = isDrawn.refunds && idempotency
  return {
    ...(isDrawn.hooks ? { hooks: hooksPlan(rng("hooks")) } : {}),
    ...(isDrawn.reconcile ? { reconcile: reconcilePlan(rng("reconcile"), charges.length) } : {}),
    ...(refunds ? { refunds: refundsPlan(rng("refunds"), charges.length) } : {}),
    ...(isDrawn.dunning ? { dunning: dunningPlan(rng("dunning")) } : {}),
    // The books of refunds and cases are not among what is saved and restored here.
    ...(isDrawn.restore && !refunds && !isDrawn.dunning ? { restore: restorePlan(rng("restore")) } : {})
  }
}

const webhookActions: ReadonlyArray<(rng: Rng) => WebhookFault["action"]> = [
  (rng) => ({ kind: "repeat", times: rng.between(1, 3) }),
  () => ({ kind: "twin" }),
  (rng) => ({ kind: "late", delayMs: rng.pick([500, 20_000, 10 * minute]) }),
  (rng) => ({ kind: "reorder", behind: rng.between(1, 4) }),
  () => ({ kind: "wrongSignature" }),
  () => ({ kind: "tampered" }),
  (rng) => ({ kind: "timestamp", offsetMs: rng.pick([-10 * minute, 10 * minute]) }),
  () => ({ kind: "drop" })
]

/** The names of the offices that a plan has. */
export const officesOf = ({ dunning, hooks, reconcile, refunds }: BesidePlan): ReadonlyArray<string> => [
  ...Array.from({ length: hooks?.offices ?? 0 }, (_, index) => `hooks-${index}`),
  ...(reconcile === undefined ? [] : ["reconcile"]),
  ...(refunds === undefined ? [] : ["refunds-0", "refunds-1"]),
  ...(dunning === undefined ? [] : ["dunning"])
]

/** What goes wrong with it. */
export const besideFaults = (seed: string, plan: BesidePlan): ReadonlyArray<SimFault> => {
  const rng = rngOf(seed).branch("beside faults")
  const offices = officesOf(plan)
  return [
    ...(offices.length === 0 ? [] : Array.from({ length: rng.between(0, 3) }, (): SimFault => ({
      kind: "office",
      office: rng.pick(offices),
      nth: rng.between(1, rng.pick([12, 60])),
      how: rng.pick(["kill", "kill", "freeze"] as const),
      ms: rng.pick([1000, 20_000, 2 * minute])
    }))),
    ...(plan.hooks === undefined ? [] : Array.from({ length: rng.between(0, 4) }, (): SimFault => ({
      kind: "webhook",
      fault: { match: { nth: rng.between(1, 10), times: rng.pick([1, 1, 3]) }, action: rng.pick(webhookActions)(rng) }
    })))
  ]
}
