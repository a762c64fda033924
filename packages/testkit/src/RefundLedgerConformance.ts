/**
 * What every `RefundLedger` must do, driver or memory, over a ledger of the same store. Each test uses a customer of its
 * own, so that one store serves the whole suite.
 */
import {
  AlreadyRefunded, type AmountMinor, type ChargeKey, type ClaimedRefund, Ledger, Refunded, RefundFailed, RefundLedger, RefundPending, RefundRefused, RefundRequest,
  type RefundOutcome, Sightings
} from "@purser/core"
import { assert, layer as testLayer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { chargeFor } from "./chargeFor.ts"
import { attachTo, claimedAndAttached, declined, longMs, many, settle as settleCharge, succeeded } from "./internal/ledgerSteps.ts"
import { StoreClock } from "./StoreClock.ts"

const period = "2026-10"

/** A paid charge of 10.00. */
const paid = Effect.fnUntraced(function*(customer: string) {
  const request = chargeFor(customer, period)
  const charge = yield* claimedAndAttached(request, `pi_${customer}`)
  yield* settleCharge(charge, succeeded(request.chargeKey, `pi_${customer}`), `pi_${customer}`)
  return request.chargeKey
})

const wish = (chargeKey: ChargeKey, refundId: string, amountMinor: number | null, again?: boolean) =>
  new RefundRequest({
    chargeKey, refundId, amountMinor: amountMinor as RefundRequest["amountMinor"], reason: "duplicate", actor: "ada", note: "test",
    ...(again === undefined ? {} : { again })
  })

const claim = (request: RefundRequest, worker = "w1") => Effect.flatMap(RefundLedger, (book) => book.claim(request, worker))
const mustClaim = (request: RefundRequest, worker = "w1") =>
  Effect.flatMap(claim(request, worker), (answer) =>
    answer._tag === "Claimed" ? Effect.succeed(answer.refund) : Effect.die(new Error(`expected Claimed, got ${answer._tag}`)))
const settle = (refund: ClaimedRefund, outcome: RefundOutcome, pollAfterMs?: number) =>
  Effect.flatMap(RefundLedger, (book) => book.settle({ lease: refund.lease, outcome, ...(pollAfterMs === undefined ? {} : { pollAfterMs }) }))
const sweep = (refund: ClaimedRefund) =>
  Effect.flatMap(RefundLedger, (book) =>
    Effect.map(book.takeExpired("sweeper", many), (taken) => taken.filter(({ lease }) => lease.refundKey === refund.lease.refundKey)))

const common = (refund: ClaimedRefund) => ({
  refundKey: refund.lease.refundKey, chargeKey: refund.chargeKey, amountMinor: refund.amountMinor, alreadySettled: false
})
const refunded = (refund: ClaimedRefund, id = "re_1") => new Refunded({ ...common(refund), processorRefundId: id })
const refused = (refund: ClaimedRefund) => new RefundRefused({ ...common(refund), code: "permission_denied", detail: "no" })

/** The trail is gapless, each step starts where the last ended, and it ends at the row. */
const assertTrail = Effect.fnUntraced(function*(refund: ClaimedRefund) {
  const book = yield* RefundLedger
  const events = yield* book.events(refund.lease.refundKey)
  const record = yield* book.find(refund.lease.refundKey)
  assert.deepStrictEqual(events.map(({ sequence }) => sequence), events.map((_, index) => index + 1))
  for (const [index, event] of events.entries()) assert.strictEqual(event.from, index === 0 ? null : events[index - 1]!.to)
  assert.deepStrictEqual([events.at(-1)!.to, events.at(-1)!.attempt], [record!.state, record!.attempt])
  return events
})

/** Runs the suite against a book and its ledger; the layer is built once. */
export const suite = <E>(name: string, layer: Layer.Layer<Ledger | RefundLedger | Sightings | StoreClock, E>): void =>
  testLayer(layer, { timeout: 120_000 })(`RefundLedger: ${name}`, (it) => {
    it.effect("stores a refund before anything is sent, with who asked and why, and gives it to one", () =>
      Effect.gen(function*() {
        const chargeKey = yield* paid("r-stored")
        const refund = yield* mustClaim(wish(chargeKey, "1", 400))
        assert.deepInclude({ ...refund }, {
          state: "requested", amountMinor: 400, currency: "usd", reason: "duplicate", paymentIntentId: "pi_r-stored", chargeId: "ch_pi_r-stored",
          processorRefundId: null, attempt: 1, resumed: false
        })
        const second = yield* claim(wish(chargeKey, "1", 400), "w2")
        assert.strictEqual(second._tag, "InProgress")
        const [record] = yield* (yield* RefundLedger).list(chargeKey)
        assert.deepInclude({ ...record }, { refundId: "1", state: "requested", actor: "ada", note: "test", outcome: null })
        assert.strictEqual((yield* assertTrail(refund)).length, 1)
      }))

    it.effect("what was read stays as it was read", () =>
      Effect.gen(function*() {
        const book = yield* RefundLedger
        const chargeKey = yield* paid("r-read")
        const refund = yield* mustClaim(wish(chargeKey, "1", 400))
        const records = [(yield* book.find(refund.lease.refundKey))!, ...yield* book.list(chargeKey)]
        yield* settle(refund, refused(refund))
        yield* mustClaim(wish(chargeKey, "1", 400, true))
        assert.deepStrictEqual(records.map(({ attempt, outcome, state }) => [state, attempt, outcome]), [["requested", 1, null], ["requested", 1, null]])
        assert.strictEqual((yield* book.find(refund.lease.refundKey))!.attempt, 2)
      }))

    it.effect("gives a later request the recorded outcome, whatever it was", () =>
      Effect.gen(function*() {
        const outcomes: ReadonlyArray<readonly [string, (refund: ClaimedRefund) => RefundOutcome]> = [
          ["succeeded", refunded],
          ["pending", (refund) => new RefundPending({ ...common(refund), processorRefundId: "re_1", detail: "later" })],
          ["failed", (refund) => new RefundFailed({ ...common(refund), processorRefundId: "re_1", detail: "expired card" })],
          ["already_refunded", (refund) => new AlreadyRefunded({ ...common(refund), detail: "elsewhere" })],
          ["refused", refused]
        ]
        for (const [state, make] of outcomes) {
          const chargeKey = yield* paid(`r-again-${state}`)
          const refund = yield* mustClaim(wish(chargeKey, "1", null))
          assert.strictEqual(refund.amountMinor, 1000)
          const outcome = make(refund)
          assert.deepStrictEqual(yield* settle(refund, outcome, longMs), { _tag: "Settled", outcome })
          const again = yield* claim(wish(chargeKey, "1", null), "w2")
          assert.strictEqual(again._tag, "AlreadySettled")
          if (again._tag === "AlreadySettled") assert.deepStrictEqual({ ...again.outcome }, { ...outcome, alreadySettled: true })
          assert.strictEqual((yield* (yield* RefundLedger).find(refund.lease.refundKey))?.state, state)
          yield* assertTrail(refund)
        }
      }))

    it.effect("tells two equal parts apart by their ids, and refuses another amount under one id", () =>
      Effect.gen(function*() {
        const chargeKey = yield* paid("r-parts")
        const first = yield* mustClaim(wish(chargeKey, "1", 300))
        const second = yield* mustClaim(wish(chargeKey, "2", 300))
        assert.notStrictEqual(first.lease.refundKey, second.lease.refundKey)
        assert.deepStrictEqual(yield* claim(wish(chargeKey, "1", 301)), { _tag: "Conflict", expectedMinor: 300, actualMinor: 301 })
      }))

    it.effect("lets no more go back than was received, counting what may have gone", () =>
      Effect.gen(function*() {
        const chargeKey = yield* paid("r-limit")
        const first = yield* mustClaim(wish(chargeKey, "1", 700))
        assert.deepStrictEqual(yield* claim(wish(chargeKey, "2", 301)), { _tag: "TooLarge", requestedMinor: 301, leftMinor: 300, receivedMinor: 1000, elsewhereMinor: 0 })
        yield* settle(first, refused(first))
        const second = yield* mustClaim(wish(chargeKey, "2", 1000))
        yield* settle(second, new RefundFailed({ ...common(second), processorRefundId: "re_9", detail: "came back" }))
        const third = yield* mustClaim(wish(chargeKey, "3", null))
        assert.strictEqual(third.amountMinor, 1000)
        assert.strictEqual((yield* claim(wish(chargeKey, "4", null)))._tag, "TooLarge")
      }))

    it.effect("of many requests at once, those that fit get in", () =>
      Effect.gen(function*() {
        const chargeKey = yield* paid("r-many")
        const answers = yield* Effect.forEach(Array.from({ length: 25 }, (_, i) => i), (i) => claim(wish(chargeKey, `p${i}`, 90), `w${i}`), {
          concurrency: "unbounded"
        })
        assert.strictEqual(answers.filter(({ _tag }) => _tag === "Claimed").length, 11)
        assert.strictEqual(answers.filter(({ _tag }) => _tag === "TooLarge").length, 14)
      }))

    it.effect("of many requests for one refund, one gets it", () =>
      Effect.gen(function*() {
        const chargeKey = yield* paid("r-race")
        const answers = yield* Effect.forEach(Array.from({ length: 20 }, (_, i) => i), (i) => claim(wish(chargeKey, "1", 500), `w${i}`), {
          concurrency: "unbounded"
        })
        assert.strictEqual(answers.filter(({ _tag }) => _tag === "Claimed").length, 1)
        assert.strictEqual(answers.filter(({ _tag }) => _tag === "InProgress").length, 19)
      }))

    it.effect("refuses what is not paid", () =>
      Effect.gen(function*() {
        const unknown = chargeFor("r-nobody", period)
        assert.deepStrictEqual(yield* claim(wish(unknown.chargeKey, "1", 1)), { _tag: "NotPaid", state: null })
        const request = chargeFor("r-declined", period)
        const charge = yield* claimedAndAttached(request, "pi_r")
        assert.deepStrictEqual(yield* claim(wish(request.chargeKey, "1", 1)), { _tag: "NotPaid", state: "attached" })
        yield* settleCharge(charge, declined(request.chargeKey, "pi_r"), "pi_r")
        assert.deepStrictEqual(yield* claim(wish(request.chargeKey, "1", 1)), { _tag: "NotPaid", state: "declined" })
      }))

    it.effect("fences off a holder whose lease ran out, except for the processor's own evidence", () =>
      Effect.gen(function*() {
        const book = yield* RefundLedger
        const chargeKey = yield* paid("r-fence")
        const old = yield* mustClaim(wish(chargeKey, "1", 1000))
        yield* StoreClock.advance(longMs)
        const [taken] = yield* sweep(old)
        assert.deepStrictEqual([taken?.resumed, taken?.attempt], [true, 1])
        assert.isFalse(yield* book.extend(old.lease))
        assert.isTrue(yield* book.extend(taken!.lease))
        yield* book.handBack(old.lease, 0, "too late")
        assert.deepStrictEqual(yield* sweep(old), [])
        assert.deepStrictEqual(yield* settle(old, refused(old)), { _tag: "LeaseLost" })
        assert.strictEqual((yield* settle(old, refunded(old)))._tag, "Settled")
        assert.strictEqual((yield* settle(taken!, refused(taken!)))._tag, "Recorded")
        assert.strictEqual((yield* settle(taken!, refunded(taken!, "re_other")))._tag, "Recorded")
        assert.strictEqual((yield* book.find(old.lease.refundKey))?.processorRefundId, "re_1")
        yield* assertTrail(old)
      }))

    it.effect("holds and hands back nothing that is over", () =>
      Effect.gen(function*() {
        const book = yield* RefundLedger
        const refund = yield* mustClaim(wish(yield* paid("r-over"), "1", 1000))
        yield* settle(refund, refused(refund))
        assert.isFalse(yield* book.extend(refund.lease))
        yield* book.handBack(refund.lease, 0, "too late")
        assert.strictEqual((yield* assertTrail(refund)).length, 2)
      }))

    it.effect("comes back to a pending refund when it is time; a success may still fail, a failure is final", () =>
      Effect.gen(function*() {
        const book = yield* RefundLedger
        const chargeKey = yield* paid("r-pending")
        const refund = yield* mustClaim(wish(chargeKey, "1", 1000))
        const pending = new RefundPending({ ...common(refund), processorRefundId: "re_1", detail: "later" })
        yield* settle(refund, pending, longMs * 2)
        yield* StoreClock.advance(longMs)
        assert.deepStrictEqual(yield* sweep(refund), [])
        yield* StoreClock.advance(longMs)
        const [taken] = yield* sweep(refund)
        assert.deepStrictEqual([taken?.state, taken?.processorRefundId], ["pending", "re_1"])
        assert.strictEqual((yield* settle(taken!, pending, longMs))._tag, "Recorded")
        assert.strictEqual((yield* settle(taken!, refunded(taken!)))._tag, "Settled")
        const failed = new RefundFailed({ ...common(refund), processorRefundId: "re_1", detail: "came back" })
        assert.strictEqual((yield* settle(refund, failed))._tag, "Settled")
        assert.strictEqual((yield* settle(refund, refunded(refund)))._tag, "Recorded")
        assert.strictEqual((yield* book.find(refund.lease.refundKey))?.state, "failed")
        yield* StoreClock.advance(longMs * 3)
        assert.deepStrictEqual(yield* sweep(refund), [])
        yield* assertTrail(refund)
      }))

    it.effect("asks again for a refused one by an explicit act alone, as the next attempt, if it still fits", () =>
      Effect.gen(function*() {
        const chargeKey = yield* paid("r-reasked")
        const refund = yield* mustClaim(wish(chargeKey, "1", 1000))
        yield* settle(refund, refused(refund))
        assert.strictEqual((yield* claim(wish(chargeKey, "1", 1000)))._tag, "AlreadySettled")
        const other = yield* mustClaim(wish(chargeKey, "2", 100))
        assert.strictEqual((yield* claim(wish(chargeKey, "1", 1000, true)))._tag, "TooLarge")
        yield* settle(other, refused(other))
        const again = yield* mustClaim(wish(chargeKey, "1", 1000, true))
        assert.deepStrictEqual([again.attempt, again.resumed], [2, true])
        assert.strictEqual((yield* claim(wish(chargeKey, "1", 1000, true)))._tag, "InProgress")
        yield* settle(again, refunded(again))
        assert.strictEqual((yield* claim(wish(chargeKey, "1", 1000, true)))._tag, "AlreadySettled")
        yield* assertTrail(refund)
      }))

    const again = (chargeKey: ChargeKey, amountMinor: number, unrefunded = false) =>
      Effect.flatMap(RefundLedger, (book) =>
        book.rebill({ chargeKey, amountMinor: amountMinor as AmountMinor, actor: "ada", reason: "right price", unrefunded }))

    it.effect("opens the next revision of what was given back, once, with a key and terms of its own, linked to the one before", () =>
      Effect.gen(function*() {
        const book = yield* RefundLedger
        const ledger = yield* Ledger
        const chargeKey = yield* paid("r-rebilled")
        assert.deepStrictEqual(yield* again(chargeKey, 900), { _tag: "NotRefunded", receivedMinor: 1000, refundedMinor: 0 })
        const part = yield* mustClaim(wish(chargeKey, "1", 400))
        yield* settle(part, refunded(part))
        assert.deepStrictEqual(yield* again(chargeKey, 900), { _tag: "NotRefunded", receivedMinor: 1000, refundedMinor: 400 })
        const rest = yield* mustClaim(wish(chargeKey, "2", null))
        yield* settle(rest, refunded(rest, "re_2"))
        const answers = yield* Effect.forEach([1, 2, 3, 4, 5], () => again(chargeKey, 900), { concurrency: "unbounded" })
        assert.deepStrictEqual(answers.map(({ _tag }) => _tag).sort(), ["Opened", "Present", "Present", "Present", "Present"])
        const opened = answers.find((answer) => answer._tag === "Opened")!
        assert.strictEqual((yield* again(chargeKey, 800))._tag, "Conflict")
        const first = chargeFor("r-rebilled", period)
        const request = chargeFor("r-rebilled", period, { amountMinor: 900, revision: 1 })
        assert.deepStrictEqual({ ...opened.request }, { ...request })
        assert.strictEqual(opened.revises, first.chargeKey)
        assert.notStrictEqual(request.chargeKey, first.chargeKey)
        assert.strictEqual(yield* book.revisedBy(chargeKey), request.chargeKey)
        assert.deepInclude({ ...yield* ledger.find(request.chargeKey) }, { state: "planned", revises: chargeKey, attempt: 1 })
        const [event] = yield* ledger.events(request.chargeKey)
        assert.match(event!.detail!, /ada.*right price/)

        const answer = yield* ledger.claim(request, "w1", { object: { id: "one:rev", paymentMethod: "pm_card_visa" } })
        const charge = answer._tag === "Claimed" ? answer.charge : assert.fail(answer._tag)
        assert.deepStrictEqual([charge.state, charge.paymentIntentId], ["claimed", null], "no claim of what is billed anew names an object")
        yield* attachTo(charge, "pi_rev")
        yield* settleCharge(charge, succeeded(request.chargeKey, "pi_rev", 900), "pi_rev")
        assert.strictEqual((yield* again(chargeKey, 900))._tag, "Present")
        assert.strictEqual((yield* again(chargeKey, 800))._tag, "NotRefunded")
        const back = yield* mustClaim(wish(request.chargeKey, "1", null))
        yield* settle(back, new AlreadyRefunded({ ...common(back), detail: "elsewhere" }))
        const second = yield* again(chargeKey, 900)
        assert.strictEqual(second._tag === "Opened" ? second.request.revision : second._tag, 2)
      }))

    /** A refund of this payment that somebody else made. */
    const elsewhere = (chargeKey: ChargeKey, payment: string, id: string, amountMinor: number, status = "succeeded") =>
      Effect.flatMap(Sightings, (sightings) =>
        sightings.note({
          id, kind: "refund", chargeKey, paymentIntentId: payment.startsWith("pi_") ? payment : null, chargeId: `ch_${payment}`, amountMinor,
          currency: "usd", status, reason: null, createdMs: 1_785_600_000_000
        }))

    it.effect("what others gave back is not left: never more than was received goes back in all", () =>
      Effect.gen(function*() {
        const book = yield* RefundLedger
        const chargeKey = yield* paid("r-others")
        yield* elsewhere(chargeKey, "pi_r-others", "re_others_1", 300)
        yield* elsewhere(chargeKey, "pi_r-others", "re_others_2", 100, "pending")
        yield* elsewhere(chargeKey, "pi_r-others", "re_others_3", 500, "failed")
        assert.deepStrictEqual(yield* claim(wish(chargeKey, "1", 601)), {
          _tag: "TooLarge", requestedMinor: 601, leftMinor: 600, receivedMinor: 1000, elsewhereMinor: 400
        })
        const part = yield* mustClaim(wish(chargeKey, "1", 200))
        yield* settle(part, refunded(part, "re_others_ours"))
        // The book's own refund, seen at the processor as well, counts once.
        yield* elsewhere(chargeKey, "pi_r-others", "re_others_ours", 200)
        const rest = yield* mustClaim(wish(chargeKey, "2", null))
        assert.strictEqual(rest.amountMinor, 400)
        yield* settle(rest, refunded(rest, "re_others_rest"))
        assert.deepInclude(yield* claim(wish(chargeKey, "3", null)), { _tag: "TooLarge", leftMinor: 0 })
        // 300 elsewhere and 600 of ours are back; 100 are on their way.
        assert.deepStrictEqual(yield* again(chargeKey, 900), { _tag: "NotRefunded", receivedMinor: 1000, refundedMinor: 900 })
        yield* elsewhere(chargeKey, "pi_r-others", "re_others_2", 100)
        assert.strictEqual((yield* again(chargeKey, 900))._tag, "Opened")
        assert.strictEqual((yield* book.list(chargeKey)).length, 2)
      }))

    it.effect("bills anew what others gave back wholly", () =>
      Effect.gen(function*() {
        const chargeKey = yield* paid("r-dashboard")
        yield* elsewhere(chargeKey, "pi_r-dashboard", "re_dashboard_1", 999)
        assert.deepStrictEqual(yield* again(chargeKey, 900), { _tag: "NotRefunded", receivedMinor: 1000, refundedMinor: 999 })
        yield* elsewhere(chargeKey, "pi_r-dashboard", "re_dashboard_2", 1)
        // Asked for all that is left, there is nothing to do; asked for an amount, there is nothing to do it with.
        const settled = yield* claim(wish(chargeKey, "1", null))
        assert.strictEqual(settled._tag === "AlreadySettled" ? settled.outcome._tag : settled._tag, "AlreadyRefunded")
        assert.strictEqual((yield* claim(wish(chargeKey, "1", 1000)))._tag, "TooLarge")
        assert.strictEqual((yield* again(chargeKey, 900))._tag, "Opened")
      }))

    it.effect("keeps the refunds of two payments of one identity apart", () =>
      Effect.gen(function*() {
        const chargeKey = yield* paid("r-twice")
        const payment = { paymentIntentId: "pi_r-second", chargeId: "ch_pi_r-second", receivedMinor: 1000 as AmountMinor }
        yield* elsewhere(chargeKey, "pi_r-second", "re_twice_1", 400)
        assert.strictEqual((yield* again(chargeKey, 900))._tag, "NotRefunded")
        const named = new RefundRequest({ ...wish(chargeKey, "pi_r-second/1", null), payment })
        const second = yield* mustClaim(named)
        assert.deepStrictEqual([second.paymentIntentId, second.chargeId, second.amountMinor], ["pi_r-second", "ch_pi_r-second", 600])
        yield* settle(second, refunded(second, "re_twice_2"))
        assert.deepStrictEqual(yield* again(chargeKey, 900), { _tag: "NotRefunded", receivedMinor: 1000, refundedMinor: 0 })
        const own = yield* mustClaim(wish(chargeKey, "1", null))
        assert.deepStrictEqual([own.paymentIntentId, own.amountMinor], ["pi_r-twice", 1000])
      }))

    it.effect("opens no revision of what is not paid, and one of what is not refunded only by decision", () =>
      Effect.gen(function*() {
        const unknown = chargeFor("r-unbilled", period)
        assert.deepStrictEqual(yield* again(unknown.chargeKey, 900), { _tag: "NotPaid", state: null })
        const charge = yield* claimedAndAttached(unknown, "pi_un")
        yield* settleCharge(charge, declined(unknown.chargeKey, "pi_un"), "pi_un")
        assert.deepStrictEqual(yield* again(unknown.chargeKey, 900, true), { _tag: "NotPaid", state: "declined" })
        const chargeKey = yield* paid("r-decided")
        assert.strictEqual((yield* again(chargeKey, 900, true))._tag, "Opened")
        assert.strictEqual((yield* again(chargeKey, 900, true))._tag, "Present")
      }))

    it.effect("counts by period, currency and state", () =>
      Effect.gen(function*() {
        const book = yield* RefundLedger
        const request = chargeFor("r-report", "2019-01")
        const charge = yield* claimedAndAttached(request, "pi_report")
        yield* settleCharge(charge, succeeded(request.chargeKey, "pi_report"), "pi_report")
        for (const id of ["1", "2"]) {
          const refund = yield* mustClaim(wish(request.chargeKey, id, 250))
          yield* settle(refund, refunded(refund, `re_${id}`))
        }
        const rows = yield* book.report("2019-01")
        assert.deepStrictEqual(rows.map((row) => ({ ...row })), [
          { billingPeriod: "2019-01", currency: "usd", state: "succeeded", refunds: 2, amountMinor: 500n }
        ])
        assert.isTrue((yield* book.report()).length >= rows.length)
        yield* elsewhere(request.chargeKey, "pi_report", "re_1", 250)
        yield* elsewhere(request.chargeKey, "pi_report", "re_elsewhere_1", 100)
        yield* elsewhere(request.chargeKey, "pi_report", "re_elsewhere_2", 50)
        yield* elsewhere(request.chargeKey, "pi_report", "re_elsewhere_3", 50, "pending")
        assert.deepStrictEqual((yield* book.reportElsewhere("2019-01")).map((row) => ({ ...row })), [
          { billingPeriod: "2019-01", currency: "usd", refunds: 2, amountMinor: 150n }
        ])
        assert.isTrue((yield* book.reportElsewhere()).length >= 1)
      }))
  })
