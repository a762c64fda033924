/** The steps that the ledger's cases are written in. */
import { type ChargeKey, type ChargeOutcome, type ChargeRequest, type ClaimAnswer, type ClaimedCharge, Declined, Ledger, type LedgerError, Rejected, Succeeded } from "@purser/core"
import { assert } from "@effect/vitest"
import { Effect } from "effect"

/** The period of most tests. */
export const period = "2026-11"
/** Longer than every lease. */
export const longMs = 10 * 60_000
/** More than a suite leaves behind. */
export const many = 1_000_000

/** One claim. */
export const claim = (request: ChargeRequest, worker = "w1") => Effect.flatMap(Ledger, (ledger) => ledger.claim(request, worker))

/** A claim that must be given. */
export const mustClaim = (request: ChargeRequest, worker = "w1"): Effect.Effect<ClaimedCharge, LedgerError, Ledger> =>
  Effect.flatMap(claim(request, worker), (answer) =>
    answer._tag === "Claimed" ? Effect.succeed(answer.charge) : Effect.die(new Error(`expected Claimed, got ${answer._tag}`)))

/** Ties an object to the charge. */
export const attachTo = (charge: ClaimedCharge, paymentIntentId: string, paymentMethod: string | null = "pm_card_visa") =>
  Effect.flatMap(Ledger, (ledger) => ledger.attach({ lease: charge.lease, generation: charge.generation, paymentIntentId, paymentMethod }))

/** Claims and attaches. */
export const claimedAndAttached = Effect.fnUntraced(function*(request: ChargeRequest, paymentIntentId: string) {
  const charge = yield* mustClaim(request)
  assert.deepStrictEqual(yield* attachTo(charge, paymentIntentId), { _tag: "Attached" })
  return charge
})

/** What every outcome has. */
export const common = (chargeKey: ChargeKey) => ({ chargeKey, alreadySettled: false })
/** A payment of the object. */
export const succeeded = (chargeKey: ChargeKey, paymentIntentId: string, amountReceivedMinor = 1000) =>
  new Succeeded({ ...common(chargeKey), paymentIntentId, chargeId: `ch_${paymentIntentId}`, amountReceivedMinor })
/** A refusal by the bank. */
export const declined = (chargeKey: ChargeKey, paymentIntentId: string | null) =>
  new Declined({ ...common(chargeKey), paymentIntentId, code: "card_declined", declineCode: "insufficient_funds", adviceCode: "try_again_later", declinedChargeId: "ch_no", detail: "no funds" })
/** A refusal by the cap. */
export const rejected = (chargeKey: ChargeKey) => new Rejected({ ...common(chargeKey), code: "cap_exceeded", detail: "does not fit" })

/** Records an outcome for the holder's attempt. */
export const settle = (charge: ClaimedCharge, outcome: ChargeOutcome, paymentIntentId: string | null = null, pollAfterMs?: number) =>
  Effect.flatMap(Ledger, (ledger) =>
    ledger.settle({
      lease: charge.lease,
      attempt: charge.attempt,
      paymentIntentId,
      outcome,
      ...(pollAfterMs === undefined ? {} : { pollAfterMs })
    }))

/** Sweeps all that ran out and keeps this test's rows. */
export const sweep = (keys: ReadonlyArray<ChargeKey>, worker = "sweeper") =>
  Effect.flatMap(Ledger, (ledger) =>
    Effect.map(ledger.takeExpired(worker, many), (taken) => taken.filter((charge) => keys.includes(charge.lease.chargeKey))))

/** The kinds of answers, sorted. */
export const tags = (answers: ReadonlyArray<ClaimAnswer>) => answers.map((answer) => answer._tag).sort()

/** A row that must be there. */
export const mustFind = (chargeKey: ChargeKey) =>
  Effect.flatMap(Ledger, (ledger) =>
    Effect.flatMap(ledger.find(chargeKey), (record) => record === undefined ? Effect.die(new Error("no row")) : Effect.succeed(record)))

/** The trail is gapless, each step starts where the last ended, and it ends at the row. */
export const assertTrail = Effect.fnUntraced(function*(chargeKey: ChargeKey) {
  const ledger = yield* Ledger
  const events = yield* ledger.events(chargeKey)
  const record = yield* mustFind(chargeKey)
  assert.deepStrictEqual(events.map((event) => event.sequence), events.map((_, index) => index + 1))
  assert.isNull(events[0]!.from)
  for (const [index, event] of events.entries()) {
    if (index > 0) assert.strictEqual(event.from, events[index - 1]!.to)
  }
  assert.strictEqual(events.at(-1)!.to, record.state)
  assert.strictEqual(events.at(-1)!.attempt, record.attempt)
  return events
})
