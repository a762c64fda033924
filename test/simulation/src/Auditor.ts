/**
 * A second opinion on the store while a world runs: it keeps leases of its own beside the ledger, and notes each answer that
 * gives a charge to two holders or lets a word count that came too late. It changes no answer.
 */
import type { ChargeKey, ClaimedCharge, Ledger } from "@purser/core"
import { Clock, Effect } from "effect"
import type { Backup } from "./Restored.ts"

interface Held {
  readonly epoch: number
  readonly worker: string
  untilMs: number
}

/** How long a lease of the memory ledger lasts. */
const leaseMs = 15_000

/** The ledger, watched. */
export const audit = (ledger: Ledger["Service"], violations: Array<string>, backup?: Backup): Ledger["Service"] => {
  const held = new Map<ChargeKey, Held>()
  backup?.onRestore.push(() => held.clear())
  const now = Clock.currentTimeMillis
  const take = (charge: ClaimedCharge, act: string, mayInterrupt: boolean) =>
    Effect.map(now, (nowMs) => {
      const { chargeKey, epoch, worker } = charge.lease
      const before = held.get(chargeKey)
      if (before !== undefined && !mayInterrupt && before.untilMs > nowMs) {
        violations.push(`${chargeKey}: ${act} gave ${worker} a charge that ${before.worker} holds for ${before.untilMs - nowMs} ms more`)
      }
      if (before !== undefined && before.epoch >= epoch) violations.push(`${chargeKey}: ${act} gave epoch ${epoch} after ${before.epoch}`)
      held.set(chargeKey, { epoch, worker, untilMs: nowMs + leaseMs })
    })
  const leave = (chargeKey: ChargeKey, forMs: number) =>
    Effect.map(now, (nowMs) => {
      const found = held.get(chargeKey)
      if (found !== undefined) found.untilMs = nowMs + forMs
    })
  const isHolder = (chargeKey: ChargeKey, epoch: number) => held.get(chargeKey)?.epoch === epoch

  return {
    ...ledger,
    claim: (request, worker) =>
      Effect.tap(ledger.claim(request, worker), (answer) => answer._tag === "Claimed" ? take(answer.charge, "claim", false) : Effect.void),
    takeExpired: (worker, limit) =>
      Effect.tap(ledger.takeExpired(worker, limit), (taken) => Effect.forEach(taken, (charge) => take(charge, "sweep", false))),
    takeWaiting: (chargeKey, worker) =>
      Effect.tap(ledger.takeWaiting(chargeKey, worker), (charge) => charge === undefined ? Effect.void : take(charge, "takeWaiting", true)),
    extend: (lease) =>
      Effect.tap(ledger.extend(lease), (kept) => {
        if (!kept) return Effect.void
        if (!isHolder(lease.chargeKey, lease.epoch)) violations.push(`${lease.chargeKey}: a lost lease was renewed`)
        return leave(lease.chargeKey, leaseMs)
      }),
    handBack: (lease, retryAfterMs, detail) =>
      Effect.tap(ledger.handBack(lease, retryAfterMs, detail), () => isHolder(lease.chargeKey, lease.epoch) ? leave(lease.chargeKey, retryAfterMs) : Effect.void),
    settle: (input) =>
      Effect.tap(ledger.settle(input), (answer) => {
        const { chargeKey, epoch } = input.lease
        if (answer._tag === "LeaseLost") return Effect.void
        if (answer._tag === "Settled" && input.outcome._tag !== "Succeeded" && !isHolder(chargeKey, epoch)) {
          violations.push(`${chargeKey}: ${input.outcome._tag} was recorded on the word of ${input.lease.worker}, who had lost the lease`)
        }
        return isHolder(chargeKey, epoch) ? leave(chargeKey, input.outcome._tag === "Processing" ? input.pollAfterMs ?? 0 : 0) : Effect.void
      }),
    reopen: (input) =>
      Effect.gen(function*() {
        const before = yield* Effect.forEach(input.chargeKeys, (chargeKey) => ledger.find(chargeKey))
        const moved = yield* ledger.reopen(input)
        if (moved === 0) return moved
        for (const record of before) {
          if (record === undefined) continue
          if (input.attempt !== undefined && record.attempt !== input.attempt) {
            violations.push(`${record.chargeKey}: attempt ${record.attempt + 1} was asked for by ${input.actor}, who had seen attempt ${input.attempt}`)
          }
          held.delete(record.chargeKey)
        }
        return moved
      })
  }
}
