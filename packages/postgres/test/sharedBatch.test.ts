/**
 * Calls at one row that share a batch of group commit: a later one shares the first one's answer only where it asks the same. Which calls do is
 * said in `PgLedger`, and in no statement.
 */
import { assert, layer } from "@effect/vitest"
import { type ClaimedCharge, Declined, Ledger, Succeeded } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Effect, Layer } from "effect"
import * as DatabaseClock from "../src/DatabaseClock.ts"
import { PgLedger } from "../src/PgLedger.ts"
import * as TestDatabase from "../src/TestDatabase.ts"

const period = "2026-11"
/** Calls of one moment: they are in the queue together before its first batch leaves. */
const together = <A, E, R>(...calls: ReadonlyArray<Effect.Effect<A, E, R>>) => Effect.all(calls, { concurrency: "unbounded" })
const runOut = DatabaseClock.advance("1 minute")

const claim = (...[customer, more]: [string, { readonly amountMinor?: number; readonly paymentMethod?: null; readonly revision?: number }?]) =>
  Effect.flatMap(Ledger, (ledger) => ledger.claim(chargeFor(customer, period, more), "w1"))
const claimed = (...input: Parameters<typeof claim>) =>
  Effect.flatMap(claim(...input), (answer) => answer._tag === "Claimed" ? Effect.succeed(answer.charge) : Effect.die(new Error(`expected Claimed, got ${answer._tag}`)))
const attach = ({ generation, lease }: ClaimedCharge, paymentIntentId: string, paymentMethod: string | null = null) =>
  Effect.flatMap(Ledger, (ledger) => ledger.attach({ lease, generation, paymentIntentId, paymentMethod }))
const decline = Effect.fnUntraced(function*({ attempt, lease }: ClaimedCharge) {
  const outcome = new Declined({
    chargeKey: lease.chargeKey, alreadySettled: false, paymentIntentId: null, code: "card_declined", declineCode: null, adviceCode: null, declinedChargeId: null, detail: "no"
  })
  yield* (yield* Ledger).settle({ lease, attempt, paymentIntentId: null, outcome })
})

layer(Layer.provideMerge(PgLedger.layer, TestDatabase.layerPostgres), { timeout: 60_000, excludeTestServices: true })("in one batch", (it) => {
  it.effect("of two first claims one is given, and other terms are a conflict", () => Effect.gen(function*() {
    const same = yield* together(claim("first"), claim("first"))
    assert.deepStrictEqual(same.map(({ _tag }) => _tag), ["Claimed", "InProgress"])
    const others = yield* together(claim("first-other"), claim("first-other", { amountMinor: 1001 }))
    assert.deepStrictEqual(others.map(({ _tag }) => _tag), ["Claimed", "Conflict"])
  }))

  it.effect("of two claims of a charge that ran out one is given", () => Effect.gen(function*() {
    yield* claimed("later")
    yield* runOut
    const answers = yield* together(claim("later"), claim("later"))
    assert.deepStrictEqual(answers.map(({ _tag }) => _tag), ["Claimed", "InProgress"])
  }))

  it.effect("a claim of a revision with other terms is a conflict", () => Effect.gen(function*() {
    const ledger = yield* Ledger
    const { attempt, lease } = yield* claimed("revised")
    yield* ledger.attach({ lease, generation: 1, paymentIntentId: "pi_paid", paymentMethod: null })
    const outcome = new Succeeded({ chargeKey: lease.chargeKey, alreadySettled: false, paymentIntentId: "pi_paid", chargeId: "ch_paid", amountReceivedMinor: 1000 })
    yield* ledger.settle({ lease, attempt, paymentIntentId: "pi_paid", outcome })
    yield* ledger.adopt({ request: chargeFor("revised", period, { revision: 1 }), paymentIntentId: "pi_anew", paymentMethod: null, worker: "w1" })
    // Nobody can claim a revision first, so that these meet where charges are that were had before: this one is found paid, and is looked at.
    const answers = yield* together(claim("revised", { revision: 1 }), claim("revised", { revision: 1, amountMinor: 1001 }))
    assert.deepStrictEqual(answers.map(({ _tag }) => _tag), ["AlreadySettled", "Conflict"])
  }))

  it.effect("of two objects for a charge one is attached, and the other hears which", () => Effect.gen(function*() {
    const charge = yield* claimed("objects")
    assert.deepStrictEqual(yield* together(attach(charge, "pi_one"), attach(charge, "pi_two")), [{ _tag: "Attached" }, { _tag: "Lost", winnerId: "pi_one" }])
  }))

  it.effect("an object is not attached for the holder before, nor for another generation", () => Effect.gen(function*() {
    const ledger = yield* Ledger
    const before = yield* claimed("holders")
    yield* runOut
    const after = yield* claimed("holders")
    // The holder's own comes first, so that it is the one whose answer could be shared.
    const [, ...late] = yield* together(attach(after, "pi_held"), attach({ ...after, generation: 2 }, "pi_held"))
    assert.deepStrictEqual(late, [{ _tag: "Lost", winnerId: "pi_held" }])
    yield* ledger.renew({ lease: after.lease, generation: 1, paymentIntentId: "pi_held" })
    const renewed = { ...after, generation: 2 }
    const [, own] = yield* together(attach({ ...renewed, lease: before.lease }, "pi_next"), attach(renewed, "pi_next"))
    assert.deepStrictEqual(own, { _tag: "Attached" }, "the refusal of the one before is not the holder's")
  }))

  it.effect("a method is frozen though another call attaches the same object without one", () => Effect.gen(function*() {
    const charge = yield* claimed("methods", { paymentMethod: null })
    yield* together(attach(charge, "pi_method"), attach(charge, "pi_method", "pm_card_visa"))
    yield* runOut
    assert.strictEqual((yield* claimed("methods", { paymentMethod: null })).paymentMethod, "pm_card_visa")
  }))

  it.effect("a holder's extension is not that of the holder before", () => Effect.gen(function*() {
    const ledger = yield* Ledger
    const before = yield* claimed("extended")
    yield* runOut
    const after = yield* claimed("extended")
    assert.deepStrictEqual(yield* together(ledger.extend(after.lease), ledger.extend(before.lease)), [true, false])
    assert.deepStrictEqual(yield* together(ledger.extend(before.lease), ledger.extend(after.lease)), [false, true])
  }))

  it.effect("room of one attempt that was given back is not that of another", () => Effect.gen(function*() {
    const ledger = yield* Ledger
    const first = yield* claimed("released")
    const { chargeKey } = first.lease
    yield* decline(first)
    yield* ledger.reopen({ chargeKeys: [chargeKey], from: ["declined"], actor: "ada", reason: "again" })
    yield* decline(yield* claimed("released"))
    const due = Effect.map(ledger.releaseDue(1000), (all) => all.filter((one) => one.chargeKey === chargeKey))
    assert.deepStrictEqual(yield* due, [{ chargeKey, attempt: 2 }])
    yield* together(ledger.markReleased(chargeKey, 1), ledger.markReleased(chargeKey, 2))
    assert.deepStrictEqual(yield* due, [])
  }))
})
