/**
 * What every `Ledger` must do, driver or memory: `docs/protocol.md` as tests. Each test uses a customer of its own, so
 * that one store serves the whole suite; sweeps are read through the keys of the test.
 */
import {
  Canceled, type ChargeKey, type ChargeOutcome, type ChargeRequest, type ClaimAnswer, type ClaimedCharge, Declined, Ledger, type LedgerError, Processing, Rejected,
  RequiresAction, Succeeded
} from "@purser/core"
import { assert, layer as testLayer } from "@effect/vitest"
import type { Layer } from "effect";
import { Effect } from "effect"
import { chargeFor } from "./chargeFor.ts"
import { StoreClock } from "./StoreClock.ts"

const period = "2026-11"
const longMs = 10 * 60_000
const many = 1_000_000

const claim = (request: ChargeRequest, worker = "w1") => Effect.flatMap(Ledger, (ledger) => ledger.claim(request, worker))

const mustClaim = (request: ChargeRequest, worker = "w1"): Effect.Effect<ClaimedCharge, LedgerError, Ledger> =>
  Effect.flatMap(claim(request, worker), (answer) =>
    answer._tag === "Claimed" ? Effect.succeed(answer.charge) : Effect.die(new Error(`expected Claimed, got ${answer._tag}`)))

const attachTo = (charge: ClaimedCharge, paymentIntentId: string, paymentMethod: string | null = "pm_card_visa") =>
  Effect.flatMap(Ledger, (ledger) => ledger.attach({ lease: charge.lease, generation: charge.generation, paymentIntentId, paymentMethod }))

const claimedAndAttached = Effect.fnUntraced(function*(request: ChargeRequest, paymentIntentId: string) {
  const charge = yield* mustClaim(request)
  assert.deepStrictEqual(yield* attachTo(charge, paymentIntentId), { _tag: "Attached" })
  return charge
})

const common = (chargeKey: ChargeKey) => ({ chargeKey, alreadySettled: false })
const succeeded = (chargeKey: ChargeKey, paymentIntentId: string, amountReceivedMinor = 1000) =>
  new Succeeded({ ...common(chargeKey), paymentIntentId, chargeId: `ch_${paymentIntentId}`, amountReceivedMinor })
const declined = (chargeKey: ChargeKey, paymentIntentId: string | null) =>
  new Declined({ ...common(chargeKey), paymentIntentId, code: "card_declined", declineCode: "insufficient_funds", detail: "no funds" })
const rejected = (chargeKey: ChargeKey) => new Rejected({ ...common(chargeKey), code: "cap_exceeded", detail: "does not fit" })

const settle = (charge: ClaimedCharge, outcome: ChargeOutcome, paymentIntentId: string | null = null, pollAfterMs?: number) =>
  Effect.flatMap(Ledger, (ledger) =>
    ledger.settle({
      lease: charge.lease,
      attempt: charge.attempt,
      paymentIntentId,
      outcome,
      ...(pollAfterMs === undefined ? {} : { pollAfterMs })
    }))

/** Sweeps all that ran out and keeps this test's rows. */
const sweep = (keys: ReadonlyArray<ChargeKey>, worker = "sweeper") =>
  Effect.flatMap(Ledger, (ledger) =>
    Effect.map(ledger.takeExpired(worker, many), (taken) => taken.filter((charge) => keys.includes(charge.lease.chargeKey))))

const tags = (answers: ReadonlyArray<ClaimAnswer>) => answers.map((answer) => answer._tag).sort()

const mustFind = (chargeKey: ChargeKey) =>
  Effect.flatMap(Ledger, (ledger) =>
    Effect.flatMap(ledger.find(chargeKey), (record) => record === undefined ? Effect.die(new Error("no row")) : Effect.succeed(record)))

/** The trail is gapless, each step starts where the last ended, and it ends at the row. */
const assertTrail = Effect.fnUntraced(function*(chargeKey: ChargeKey) {
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

/** Runs the suite against a ledger; the layer is built once. */
export const suite = <E>(name: string, layer: Layer.Layer<Ledger | StoreClock, E>): void =>
  testLayer(layer, { timeout: 120_000 })(`Ledger: ${name}`, (it) => {
    it.effect("claims a new charge freshly, with its terms and a full lease", () =>
      Effect.gen(function*() {
        const request = chargeFor("fresh", period, { item: "seat", paymentMethod: "pm_1" })
        const charge = yield* mustClaim(request)
        assert.deepStrictEqual({ ...charge.lease }, { chargeKey: request.chargeKey, worker: "w1", epoch: charge.lease.epoch })
        assert.deepStrictEqual(
          [charge.state, charge.resumed, charge.generation, charge.attempt, charge.paymentIntentId, charge.paymentMethod],
          ["claimed", false, 1, 1, null, "pm_1"]
        )
        assert.isAbove(charge.leaseLeftMs, 0)
        assert.strictEqual(charge.sinceFirstClaimMs, 0)
        const record = yield* mustFind(request.chargeKey)
        assert.deepStrictEqual({ ...record.request }, { ...request })
        assert.strictEqual(record.state, "claimed")
        assert.isNull(record.outcome)
        yield* assertTrail(request.chargeKey)
      }))

    it.effect("answers a claim of a held charge with the time that is left", () =>
      Effect.gen(function*() {
        const request = chargeFor("held", period)
        const charge = yield* mustClaim(request)
        const answer = yield* claim(request, "w2")
        assert.strictEqual(answer._tag, "InProgress")
        if (answer._tag === "InProgress") {
          assert.isAbove(answer.leaseLeftMs, 0)
          assert.isAtMost(answer.leaseLeftMs, charge.leaseLeftMs)
        }
      }))

    it.effect("gives one of many simultaneous claims the charge and the others its lease", () =>
      Effect.gen(function*() {
        const request = chargeFor("simultaneous", period)
        const answers = yield* Effect.all(Array.from({ length: 40 }, (_, index) => claim(request, `w${index}`)), { concurrency: "unbounded" })
        assert.deepStrictEqual(tags(answers), ["Claimed", ...Array.from({ length: 39 }, () => "InProgress")])
      }))

    it.effect("takes one of two simultaneous claims of different terms and calls the other a conflict", () =>
      Effect.gen(function*() {
        const answers = yield* Effect.all(
          [claim(chargeFor("terms-race", period, { amountMinor: 1000 })), claim(chargeFor("terms-race", period, { amountMinor: 2000 }))],
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(tags(answers), ["Claimed", "Conflict"])
      }))

    it.effect("keeps hundreds of simultaneous claims of distinct charges apart", () =>
      Effect.gen(function*() {
        const requests = Array.from({ length: 700 }, (_, index) => chargeFor(`apart-${index}`, period, { amountMinor: 1000 + index }))
        const charges = yield* Effect.forEach(requests, (request) => mustClaim(request), { concurrency: "unbounded" })
        assert.deepStrictEqual(
          charges.map((charge) => [charge.lease.chargeKey, charge.request.amountMinor]),
          requests.map((request) => [request.chargeKey, request.amountMinor])
        )
        const attached = yield* Effect.forEach(charges, (charge, index) => attachTo(charge, `pi_apart_${index}`), { concurrency: "unbounded" })
        assert.isTrue(attached.every((answer) => answer._tag === "Attached"))
        const settled = yield* Effect.forEach(charges, (charge, index) =>
          settle(charge, succeeded(charge.lease.chargeKey, `pi_apart_${index}`, 1000 + index), `pi_apart_${index}`), { concurrency: "unbounded" })
        assert.isTrue(settled.every((answer) => answer._tag === "Settled"))
        for (const index of [0, 350, 699]) {
          const { outcome } = yield* mustFind(requests[index]!.chargeKey)
          assert.strictEqual(outcome?._tag === "Succeeded" ? outcome.amountReceivedMinor : null, 1000 + index)
        }
      }))

    for (
      const [what, terms] of [
        ["amount", { amountMinor: 1001 }],
        ["currency", { currency: "eur" }],
        ["Stripe customer", { stripeCustomerId: "cus_other" }],
        ["payment method", { paymentMethod: "pm_other" }],
        ["absence of a payment method", { paymentMethod: null }]
      ] as const
    ) {
      it.effect(`calls another ${what} a conflict, in work and settled, and says both sides`, () =>
        Effect.gen(function*() {
          const customer = `conflict ${what}`
          const base = { stripeCustomerId: "cus_base" }
          const request = chargeFor(customer, period, base)
          const other = chargeFor(customer, period, { ...base, ...terms })
          const charge = yield* mustClaim(request)
          const answer = yield* claim(other)
          assert.strictEqual(answer._tag, "Conflict")
          if (answer._tag === "Conflict") {
            assert.deepStrictEqual(answer.expected, {
              amountMinor: 1000, currency: "usd", stripeCustomerId: "cus_base", paymentMethod: "pm_card_visa"
            })
            assert.notDeepEqual(answer.actual, answer.expected)
          }
          yield* settle(charge, rejected(request.chargeKey))
          assert.strictEqual((yield* claim(other))._tag, "Conflict")
          assert.strictEqual((yield* claim(request))._tag, "AlreadySettled")
        }))
    }

    it.effect("lets another worker resume after the lease, with a new epoch and the first claim's time", () =>
      Effect.gen(function*() {
        const request = chargeFor("takeover", period)
        const first = yield* claimedAndAttached(request, "pi_takeover")
        yield* StoreClock.advance(longMs)
        const second = yield* mustClaim(request, "w2")
        assert.deepStrictEqual([second.resumed, second.state, second.paymentIntentId, second.paymentMethod], [true, "attached", "pi_takeover", "pm_card_visa"])
        assert.isAbove(second.lease.epoch, first.lease.epoch)
        assert.isAtLeast(second.sinceFirstClaimMs, longMs)
        assert.approximately(second.firstClaimedAtMs, first.firstClaimedAtMs, 1)
        yield* assertTrail(request.chargeKey)
      }))

    it.effect("lets nothing of an old epoch through", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const request = chargeFor("fenced", period)
        const old = yield* mustClaim(request)
        yield* StoreClock.advance(longMs)
        const now = yield* mustClaim(request, "w2")
        assert.deepStrictEqual(yield* attachTo(old, "pi_old"), { _tag: "Lost", winnerId: null })
        assert.isFalse(yield* ledger.extend(old.lease))
        yield* ledger.handBack(old.lease, 0, "too late")
        assert.strictEqual((yield* claim(request, "w3"))._tag, "InProgress")
        assert.deepStrictEqual(yield* settle(old, rejected(request.chargeKey)), { _tag: "LeaseLost" })
        assert.deepStrictEqual(yield* settle(old, succeeded(request.chargeKey, "pi_old"), "pi_old"), { _tag: "LeaseLost" })
        assert.deepStrictEqual(yield* attachTo(now, "pi_now"), { _tag: "Attached" })
        assert.isFalse(yield* ledger.renew({ lease: old.lease, generation: 1, paymentIntentId: "pi_now" }))
        const record = yield* mustFind(request.chargeKey)
        assert.deepStrictEqual([record.state, record.paymentIntentId], ["attached", "pi_now"])
      }))

    it.effect("ties one of two payment objects, and tells the loser which", () =>
      Effect.gen(function*() {
        const charge = yield* mustClaim(chargeFor("attach-race", period))
        const answers = yield* Effect.all([attachTo(charge, "pi_a"), attachTo(charge, "pi_b")], { concurrency: "unbounded" })
        const winner = (yield* mustFind(charge.lease.chargeKey)).paymentIntentId
        assert.include(["pi_a", "pi_b"], winner)
        assert.deepStrictEqual(
          answers,
          winner === "pi_a"
            ? [{ _tag: "Attached" }, { _tag: "Lost", winnerId: "pi_a" }]
            : [{ _tag: "Lost", winnerId: "pi_b" }, { _tag: "Attached" }]
        )
      }))

    it.effect("answers a repeated attach and a repeated settle as done", () =>
      Effect.gen(function*() {
        const request = chargeFor("repeated", period)
        const charge = yield* claimedAndAttached(request, "pi_repeated")
        assert.deepStrictEqual(yield* attachTo(charge, "pi_repeated"), { _tag: "Attached" })
        const paid = succeeded(request.chargeKey, "pi_repeated")
        const answers = yield* Effect.all([settle(charge, paid, "pi_repeated"), settle(charge, paid, "pi_repeated")], { concurrency: "unbounded" })
        assert.deepStrictEqual(answers.map((answer) => answer._tag).sort(), ["Recorded", "Settled"])
        const events = yield* assertTrail(request.chargeKey)
        assert.strictEqual(events.filter((event) => event.to === "succeeded").length, 1)
        assert.strictEqual(events.filter((event) => event.to === "attached").length, 1)
      }))

    it.effect("refuses an attach of another generation", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const charge = yield* mustClaim(chargeFor("generation", period))
        const answer = yield* ledger.attach({ lease: charge.lease, generation: 2, paymentIntentId: "pi_2", paymentMethod: null })
        assert.strictEqual(answer._tag, "Lost")
        assert.strictEqual((yield* mustFind(charge.lease.chargeKey)).state, "claimed")
      }))

    for (
      const [label, make] of [
        ["succeeded", (key: ChargeKey) => succeeded(key, "pi_o")],
        ["declined", (key: ChargeKey) => declined(key, "pi_o")],
        ["requires_action", (key: ChargeKey) => new RequiresAction({ ...common(key), paymentIntentId: "pi_o", detail: "3-D Secure" })],
        ["processing", (key: ChargeKey) => new Processing({ ...common(key), paymentIntentId: "pi_o" })],
        ["rejected", rejected],
        ["canceled", (key: ChargeKey) => new Canceled({ ...common(key), paymentIntentId: "pi_o", detail: "canceled by hand" })]
      ] as const
    ) {
      it.effect(`gives a later delivery the recorded outcome: ${label}`, () =>
        Effect.gen(function*() {
          const request = chargeFor(`outcome-${label}`, period)
          const charge = yield* claimedAndAttached(request, "pi_o")
          const outcome = make(request.chargeKey)
          assert.deepStrictEqual(yield* settle(charge, outcome, "pi_o", 5000), { _tag: "Settled", outcome })
          assert.strictEqual((yield* mustFind(request.chargeKey)).state, label)
          const answer = yield* claim(request, "w2")
          assert.strictEqual(answer._tag, "AlreadySettled")
          if (answer._tag === "AlreadySettled") assert.deepStrictEqual({ ...answer.outcome }, { ...outcome, alreadySettled: true })
          yield* assertTrail(request.chargeKey)
        }))
    }

    it.effect("records a success of the attached object though the lease is another's", () =>
      Effect.gen(function*() {
        const request = chargeFor("truth", period)
        const old = yield* claimedAndAttached(request, "pi_truth")
        yield* StoreClock.advance(longMs)
        const now = yield* mustClaim(request, "w2")
        assert.deepStrictEqual(yield* settle(old, declined(request.chargeKey, "pi_truth"), "pi_truth"), { _tag: "LeaseLost" })
        assert.strictEqual((yield* settle(old, succeeded(request.chargeKey, "pi_truth"), "pi_truth"))._tag, "Settled")
        const answer = yield* settle(now, declined(request.chargeKey, "pi_truth"), "pi_truth")
        assert.strictEqual(answer._tag, "Recorded")
        assert.strictEqual((yield* mustFind(request.chargeKey)).state, "succeeded")
        assert.deepStrictEqual(yield* sweep([request.chargeKey]), [])
      }))

    it.effect("records a late success over a decline, and gives no room back for it", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const request = chargeFor("late-success", period)
        const charge = yield* claimedAndAttached(request, "pi_late")
        yield* settle(charge, declined(request.chargeKey, "pi_late"), "pi_late")
        assert.strictEqual((yield* settle(charge, succeeded(request.chargeKey, "pi_late"), "pi_late"))._tag, "Settled")
        assert.strictEqual((yield* mustFind(request.chargeKey)).state, "succeeded")
        assert.notInclude((yield* ledger.releaseDue(many)).map((due) => due.chargeKey), request.chargeKey)
        yield* assertTrail(request.chargeKey)
      }))

    it.effect("never replaces a success", () =>
      Effect.gen(function*() {
        const request = chargeFor("final", period)
        const charge = yield* claimedAndAttached(request, "pi_final")
        yield* settle(charge, succeeded(request.chargeKey, "pi_final"), "pi_final")
        for (const other of [declined(request.chargeKey, "pi_final"), rejected(request.chargeKey), succeeded(request.chargeKey, "pi_other")]) {
          const answer = yield* settle(charge, other, "pi_final")
          assert.strictEqual(answer._tag, "Recorded")
          if (answer._tag === "Recorded" && answer.outcome._tag === "Succeeded") assert.strictEqual(answer.outcome.paymentIntentId, "pi_final")
        }
      }))

    it.effect("records nothing of another attempt", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const request = chargeFor("attempt", period)
        const charge = yield* claimedAndAttached(request, "pi_attempt")
        const answer = yield* ledger.settle({ lease: charge.lease, attempt: 2, paymentIntentId: "pi_attempt", outcome: declined(request.chargeKey, "pi_attempt") })
        assert.strictEqual(answer._tag, "LeaseLost")
      }))

    it.effect("comes back to a processing charge when it is time, and then settles it", () =>
      Effect.gen(function*() {
        const request = chargeFor("processing", period)
        const keys = [request.chargeKey]
        const charge = yield* claimedAndAttached(request, "pi_slow")
        const processing = new Processing({ ...common(request.chargeKey), paymentIntentId: "pi_slow" })
        assert.strictEqual((yield* settle(charge, processing, "pi_slow", longMs * 2))._tag, "Settled")
        yield* StoreClock.advance(longMs)
        assert.deepStrictEqual(yield* sweep(keys), [])
        yield* StoreClock.advance(longMs)
        const [taken] = yield* sweep(keys)
        assert.deepStrictEqual([taken?.state, taken?.paymentIntentId, taken?.resumed], ["processing", "pi_slow", true])
        assert.strictEqual((yield* settle(taken!, processing, "pi_slow", longMs))._tag, "Recorded")
        assert.deepStrictEqual(yield* sweep(keys), [])
        yield* StoreClock.advance(longMs)
        const [again] = yield* sweep(keys)
        assert.strictEqual((yield* settle(again!, succeeded(request.chargeKey, "pi_slow"), "pi_slow"))._tag, "Settled")
        assert.deepStrictEqual(yield* sweep(keys), [])
        yield* assertTrail(request.chargeKey)
      }))

    it.effect("extends a lease", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const charge = yield* mustClaim(chargeFor("extended", period))
        yield* StoreClock.advance(charge.leaseLeftMs * 0.75)
        assert.isTrue(yield* ledger.extend(charge.lease))
        yield* StoreClock.advance(charge.leaseLeftMs * 0.75)
        assert.deepStrictEqual(yield* sweep([charge.lease.chargeKey]), [])
        yield* StoreClock.advance(charge.leaseLeftMs)
        assert.strictEqual((yield* sweep([charge.lease.chargeKey])).length, 1)
        assert.isFalse(yield* ledger.extend(charge.lease))
      }))

    it.effect("extends no settled charge", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const charge = yield* mustClaim(chargeFor("extended-settled", period))
        yield* settle(charge, rejected(charge.lease.chargeKey))
        assert.isFalse(yield* ledger.extend(charge.lease))
        yield* ledger.handBack(charge.lease, 0, "nothing to give back")
        assert.strictEqual((yield* mustFind(charge.lease.chargeKey)).state, "rejected")
        assert.deepStrictEqual(yield* sweep([charge.lease.chargeKey]), [])
      }))

    it.effect("hands a charge back for after a while, and fences the giver off once it is taken", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const request = chargeFor("handed", period)
        const first = yield* mustClaim(request)
        yield* ledger.handBack(first.lease, longMs, "rate limited")
        assert.strictEqual((yield* claim(request, "w2"))._tag, "InProgress")
        yield* StoreClock.advance(longMs)
        const second = yield* mustClaim(request, "w2")
        assert.isTrue(second.resumed)
        assert.strictEqual((yield* attachTo(first, "pi_first"))._tag, "Lost")
        yield* ledger.handBack(second.lease, 0, "stopped")
        assert.isTrue((yield* mustClaim(request, "w3")).resumed)
        const events = yield* assertTrail(request.chargeKey)
        assert.include(events.map((event) => event.detail), "rate limited")
      }))

    it.effect("renews after a canceled object: next generation, none attached, lease kept", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const request = chargeFor("renewed", period, { paymentMethod: null })
        const charge = yield* mustClaim(request)
        yield* attachTo(charge, "pi_g1", "pm_default")
        const input = { lease: charge.lease, generation: 1, paymentIntentId: "pi_g1" }
        assert.isFalse(yield* ledger.renew({ ...input, generation: 2 }))
        assert.isFalse(yield* ledger.renew({ ...input, paymentIntentId: "pi_other" }))
        assert.isTrue(yield* ledger.renew(input))
        assert.isFalse(yield* ledger.renew(input))
        const record = yield* mustFind(request.chargeKey)
        assert.deepStrictEqual([record.state, record.generation, record.paymentIntentId], ["claimed", 2, null])
        assert.strictEqual((yield* claim(request, "w2"))._tag, "InProgress")
        assert.strictEqual((yield* attachTo(charge, "pi_g1"))._tag, "Lost")
        assert.strictEqual((yield* attachTo({ ...charge, generation: 2 }, "pi_g2"))._tag, "Attached")
        yield* assertTrail(request.chargeKey)
      }))

    it.effect("keeps a quarantined charge from claims and sweeps", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const request = chargeFor("quarantined", period)
        const charge = yield* claimedAndAttached(request, "pi_q")
        yield* ledger.quarantine(charge.lease, "amount is 1, not 1000")
        yield* StoreClock.advance(longMs)
        assert.deepStrictEqual(yield* claim(request, "w2"), { _tag: "Quarantined", detail: "amount is 1, not 1000" })
        assert.strictEqual((yield* claim(chargeFor("quarantined", period, { amountMinor: 5 })))._tag, "Conflict")
        assert.deepStrictEqual(yield* sweep([request.chargeKey]), [])
        assert.strictEqual((yield* mustFind(request.chargeKey)).quarantine, "amount is 1, not 1000")
        yield* assertTrail(request.chargeKey)
      }))

    it.effect("sweeps what ran out, once, oldest first, and nothing that is held", () =>
      Effect.gen(function*() {
        const requests = Array.from({ length: 6 }, (_, index) => chargeFor(`swept-${index}`, period))
        const keys = requests.map((request) => request.chargeKey)
        for (const request of requests.slice(0, 5)) {
          yield* mustClaim(request)
          yield* StoreClock.advance(10)
        }
        yield* StoreClock.advance(longMs)
        yield* mustClaim(requests[5]!)
        const taken = yield* sweep(keys)
        assert.deepStrictEqual(taken.map((charge) => charge.lease.chargeKey), keys.slice(0, 5))
        assert.isTrue(taken.every((charge) => charge.resumed && charge.lease.worker === "sweeper" && charge.leaseLeftMs > 0))
        assert.deepStrictEqual(taken.map((charge) => ({ ...charge.request })), requests.slice(0, 5).map((request) => ({ ...request })))
        assert.deepStrictEqual(yield* sweep(keys), [])
      }))

    it.effect("gives no row to two sweepers, and none to a claim as well", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const requests = Array.from({ length: 120 }, (_, index) => chargeFor(`shared-${index}`, period))
        const keys = new Set<string>(requests.map((request) => request.chargeKey))
        yield* Effect.forEach(requests, (request) => mustClaim(request), { concurrency: "unbounded" })
        yield* StoreClock.advance(longMs)
        const [swept, claimed] = yield* Effect.all([
          Effect.all(Array.from({ length: 6 }, (_, index) => ledger.takeExpired(`s${index}`, 50)), { concurrency: "unbounded" }),
          Effect.forEach(requests, (request) => claim(request, "claimer"), { concurrency: "unbounded" })
        ], { concurrency: "unbounded" })
        const left = yield* sweep([...keys] as Array<ChargeKey>)
        const all = [
          ...swept.flat().map((charge) => charge.lease.chargeKey).filter((key) => keys.has(key)),
          ...claimed.flatMap((answer) => answer._tag === "Claimed" ? [answer.charge.lease.chargeKey] : []),
          ...left.map((charge) => charge.lease.chargeKey)
        ]
        assert.strictEqual(all.length, 120)
        assert.strictEqual(new Set(all).size, 120)
      }))

    it.effect("lists room to be given back until it is marked, for this attempt only", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const due = Effect.map(ledger.releaseDue(many), (rows) => rows.filter((row) => keys.includes(row.chargeKey)))
        const requests = ["due-declined", "due-rejected", "due-canceled", "due-paid"].map((customer) => chargeFor(customer, period))
        const keys = requests.map((request) => request.chargeKey)
        const charges = yield* Effect.forEach(requests, (request) => mustClaim(request))
        yield* settle(charges[0]!, declined(keys[0]!, null))
        yield* settle(charges[1]!, rejected(keys[1]!))
        yield* settle(charges[2]!, new Canceled({ ...common(keys[2]!), paymentIntentId: null, detail: "by hand" }))
        yield* settle(charges[3]!, succeeded(keys[3]!, "pi_due"))
        assert.sameMembers((yield* due).map((row) => row.chargeKey), keys.slice(0, 3))
        assert.isTrue((yield* due).every((row) => row.attempt === 1))
        yield* ledger.markReleased(keys[0]!, 1)
        yield* ledger.markReleased(keys[0]!, 1)
        yield* ledger.markReleased(keys[1]!, 2)
        assert.sameMembers((yield* due).map((row) => row.chargeKey), [keys[1]!, keys[2]!])
      }))

    it.effect("reopens declined and rejected charges only, with the next attempt, who and why", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const requests = ["re-declined", "re-declined-pi", "re-rejected", "re-paid", "re-held"].map((customer) => chargeFor(customer, period))
        const keys = requests.map((request) => request.chargeKey)
        const charges = yield* Effect.forEach(requests, (request) => mustClaim(request))
        yield* settle(charges[0]!, declined(keys[0]!, null))
        yield* attachTo(charges[1]!, "pi_re")
        yield* settle(charges[1]!, declined(keys[1]!, "pi_re"), "pi_re")
        yield* settle(charges[2]!, rejected(keys[2]!))
        yield* attachTo(charges[3]!, "pi_paid")
        yield* settle(charges[3]!, succeeded(keys[3]!, "pi_paid"), "pi_paid")
        const act = { chargeKeys: keys, actor: "ada", reason: "new card" }
        assert.strictEqual(yield* ledger.reopen({ ...act, from: ["declined"] }), 2)
        assert.strictEqual(yield* ledger.reopen({ ...act, from: ["declined", "rejected"] }), 1)
        assert.strictEqual(yield* ledger.reopen({ ...act, from: ["declined", "rejected"] }), 0)
        const records = yield* Effect.forEach(keys, mustFind)
        assert.deepStrictEqual(
          records.map((record) => [record.state, record.attempt, record.outcome?._tag ?? null]),
          [["planned", 2, null], ["attached", 2, null], ["planned", 2, null], ["succeeded", 1, "Succeeded"], ["claimed", 1, null]]
        )
        const events = yield* assertTrail(keys[0]!)
        assert.match(events.at(-1)!.detail!, /ada.*new card/)
        assert.isFalse((yield* ledger.releaseDue(many)).some((row) => keys.includes(row.chargeKey)))
        const again = yield* mustClaim(requests[0]!, "w2")
        assert.deepStrictEqual([again.state, again.attempt, again.resumed], ["claimed", 2, true])
        const [swept] = yield* sweep([keys[1]!])
        assert.deepStrictEqual([swept?.state, swept?.attempt, swept?.paymentIntentId], ["attached", 2, "pi_re"])
        yield* assertTrail(keys[1]!)
      }))

    it.effect("forgets the default method that a reopened attempt was declined with, and keeps a requested one", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const requests = [chargeFor("re-default", period, { paymentMethod: null }), chargeFor("re-requested", period, { paymentMethod: "pm_asked" })]
        for (const [index, request] of requests.entries()) {
          const charge = yield* mustClaim(request)
          yield* attachTo(charge, `pi_method_${index}`, request.paymentMethod ?? "pm_default")
          yield* settle(charge, declined(request.chargeKey, `pi_method_${index}`), `pi_method_${index}`)
        }
        yield* ledger.reopen({ chargeKeys: requests.map((request) => request.chargeKey), from: ["declined"], actor: "ada", reason: "new card" })
        const claimed = yield* Effect.forEach(requests, (request) => mustClaim(request, "w2"))
        assert.deepStrictEqual(claimed.map((charge) => charge.paymentMethod), [null, "pm_asked"])
      }))

    it.effect("lets who settled a charge before change nothing once it was reopened", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const request = chargeFor("reopened-fenced", period)
        const charge = yield* mustClaim(request)
        yield* settle(charge, rejected(request.chargeKey))
        yield* ledger.reopen({ chargeKeys: [request.chargeKey], from: ["rejected"], actor: "ada", reason: "cap raised" })
        assert.deepStrictEqual(yield* settle(charge, rejected(request.chargeKey)), { _tag: "LeaseLost" })
        assert.deepStrictEqual(yield* settle({ ...charge, attempt: 2 }, rejected(request.chargeKey)), { _tag: "LeaseLost" })
        yield* ledger.handBack(charge.lease, longMs, "late")
        assert.strictEqual((yield* claim(request, "w2"))._tag, "Claimed")
      }))

    it.effect("keeps text that would break a statement", () =>
      Effect.gen(function*() {
        const request = chargeFor("O'Brien \"x\" \\ {a,b} 北京", period, { item: "a:b%c,{}\"", stripeCustomerId: "cus_'{}" })
        const charge = yield* mustClaim(request)
        const outcome = new Rejected({ ...common(request.chargeKey), code: "x", detail: "it's \"bad\" \\ {,} \u{1F4B8} end" })
        yield* settle(charge, outcome)
        const record = yield* mustFind(request.chargeKey)
        assert.deepStrictEqual({ ...record.request }, { ...request })
        assert.strictEqual(record.outcome?._tag === "Rejected" ? record.outcome.detail : null, outcome.detail)
      }))

    it.effect("settles the others of a batch when one detail holds a NUL", () =>
      Effect.gen(function*() {
        const requests = Array.from({ length: 5 }, (_, index) => chargeFor(`nul-${index}`, period))
        const charges = yield* Effect.forEach(requests, (request) => mustClaim(request), { concurrency: "unbounded" })
        const answers = yield* Effect.forEach(charges, (charge, index) =>
          settle(charge, new Rejected({ ...common(charge.lease.chargeKey), code: "x", detail: index === 2 ? "a\0b" : "plain" })), { concurrency: "unbounded" })
        assert.deepStrictEqual(answers.map((answer) => answer._tag), Array.from({ length: 5 }, () => "Settled"))
      }))

    it.effect("reports counts and sums per state of a period", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const own = "2019-W07"
        const requests = Array.from({ length: 5 }, (_, index) => chargeFor(`report-${index}`, own, { amountMinor: 99_999_999 - index }))
        const charges = yield* Effect.forEach(requests, (request) => mustClaim(request))
        yield* settle(charges[0]!, succeeded(requests[0]!.chargeKey, "pi_r0", 99_999_999))
        yield* settle(charges[1]!, succeeded(requests[1]!.chargeKey, "pi_r1", 99_999_998))
        yield* settle(charges[2]!, declined(requests[2]!.chargeKey, null))
        yield* ledger.quarantine(charges[3]!.lease, "look")
        const totals = (yield* ledger.report(own)).toSorted((a, b) => a.state.localeCompare(b.state))
        const base = { billingPeriod: own, currency: "usd" }
        assert.deepStrictEqual(totals.map((total) => ({ ...total })), [
          { ...base, state: "claimed", charges: 2, amountMinor: 199_999_991n, receivedMinor: 0n, quarantined: 1 },
          { ...base, state: "declined", charges: 1, amountMinor: 99_999_997n, receivedMinor: 0n, quarantined: 0 },
          { ...base, state: "succeeded", charges: 2, amountMinor: 199_999_997n, receivedMinor: 199_999_997n, quarantined: 0 }
        ])
        assert.isTrue((yield* ledger.report()).some((total) => total.billingPeriod === own))
      }))

    it.effect("finds nothing where nothing is", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const { chargeKey } = chargeFor("nobody", period)
        assert.isUndefined(yield* ledger.find(chargeKey))
        assert.deepStrictEqual(yield* ledger.events(chargeKey), [])
        assert.isFalse(yield* ledger.extend({ chargeKey, worker: "w", epoch: 1 }))
        const charge = { lease: { chargeKey, worker: "w", epoch: 1 }, attempt: 1, generation: 1 } as ClaimedCharge
        assert.deepStrictEqual(yield* settle(charge, rejected(chargeKey)), { _tag: "LeaseLost" })
        assert.deepStrictEqual(yield* attachTo(charge, "pi_nobody"), { _tag: "Lost", winnerId: null })
      }))
  })
