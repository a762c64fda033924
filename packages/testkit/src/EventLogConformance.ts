/** What every `EventLog` must do together with its ledger: one order, without gaps, that never changes. */
import { type ChargeKey, cursorAfter, cursorAt, EventLog, type FeedEvent, Ledger, Principal } from "@purser/core"
import { assert, layer as testLayer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { chargeFor } from "./chargeFor.ts"
import { claimedAndAttached, mustClaim, settle, succeeded } from "./internal/ledgerSteps.ts"

const reasonOf = <A, R>(effect: Effect.Effect<A, { readonly reason: object }, R>) => Effect.map(Effect.flip(effect), ({ reason }) => ({ ...reason }))

/** Gives places until there is nothing to do. */
const advanceAll = (limit = 1000) =>
  Effect.gen(function*() {
    const log = yield* EventLog
    for (;;) {
      const head = yield* log.advance(limit)
      if (!head.more) return head
    }
  })

const pay = Effect.fnUntraced(function*(customer: string) {
  const request = chargeFor(customer, "2026-11", { item: "seat", amountMinor: 4200 })
  const charge = yield* claimedAndAttached(request, `pi_${customer}`)
  yield* settle(charge, succeeded(request.chargeKey, `pi_${customer}`), `pi_${customer}`)
  return request.chargeKey
})

const readAll = Effect.fnUntraced(function*(after: number, page = 1000) {
  const log = yield* EventLog
  const events: Array<FeedEvent> = []
  for (;;) {
    const some = yield* log.read({ epoch: null, sequence: after + events.length }, page)
    if (some.length === 0) return events
    events.push(...some)
  }
})

/** Runs the suite against a log and its ledger; the layer is built once. */
export const suite = <E>(name: string, layer: Layer.Layer<EventLog | Ledger, E>): void =>
  testLayer(layer, { timeout: 120_000 })(`EventLog: ${name}`, (it) => {
    it.effect("gives each event of the ledger one place, with what it says about the charge", () =>
      Effect.gen(function*() {
        const { sequence: before } = yield* advanceAll()
        const own = yield* (yield* Ledger).events(yield* Effect.provideService(pay("places"), Principal, "alice"))
        assert.isAtLeast(own.length, 3)
        assert.strictEqual((yield* advanceAll()).sequence, before + own.length)
        assert.strictEqual((yield* advanceAll()).sequence, before + own.length)
        const events = yield* readAll(before)
        assert.deepStrictEqual(events.map(({ sequence }) => sequence), own.map((_, index) => before + index + 1))
        assert.deepStrictEqual(
          events.map(({ atMs, attempt, chargeKey, chargeSequence, detail, from, principal, to, worker }) => ({ atMs, attempt, chargeKey, detail, from, principal, sequence: chargeSequence, to, worker })),
          own.map(({ atMs, attempt, chargeKey, detail, from, principal, sequence, to, worker }) => ({ atMs, attempt, chargeKey, detail, from, principal, sequence, to, worker }))
        )
        assert.deepStrictEqual(events.filter(({ principal }) => principal !== null).map(({ principal, to }) => [to, principal]), [["claimed", "alice"]])
        const { amountMinor, billingPeriod, currency, customerId, item, namespace } = events.at(-1)!
        const expected = chargeFor("places", "2026-11", { item: "seat", amountMinor: 4200 })
        assert.deepStrictEqual({ amountMinor, billingPeriod, currency, customerId, item, namespace }, {
          amountMinor: 4200, billingPeriod: expected.billingPeriod, currency: expected.currency, customerId: "places", item: "seat", namespace: expected.namespace
        })
      }))

    it.effect("keeps the places that it has given, in pages of any size", () =>
      Effect.gen(function*() {
        const { sequence: before } = yield* advanceAll()
        for (let n = 0; n < 5; n++) {
          yield* pay(`pages-${n}`)
          yield* advanceAll(2)
        }
        const all = yield* readAll(before)
        assert.isAtLeast(all.length, 15)
        assert.deepStrictEqual(all.map(({ sequence }) => sequence), all.map((_, index) => before + index + 1))
        yield* pay("pages-later")
        yield* advanceAll(1)
        assert.deepStrictEqual((yield* readAll(before, 4)).slice(0, all.length), all)
      }))

    it.effect("keeps the order of each charge's own events", () =>
      Effect.gen(function*() {
        const { sequence: before } = yield* advanceAll()
        yield* Effect.forEach(Array.from({ length: 40 }, (_, n) => `order-${n}`), pay, { concurrency: "unbounded" })
        yield* advanceAll(7)
        const seen = new Map<ChargeKey, number>()
        const events = yield* readAll(before)
        assert.isAtLeast(events.length, 120)
        for (const { chargeKey, chargeSequence } of events) {
          assert.strictEqual(chargeSequence, (seen.get(chargeKey) ?? 0) + 1)
          seen.set(chargeKey, chargeSequence)
        }
      }))

    it.effect("shows how charges stood at a place, page by page, and nothing of what came after", () =>
      Effect.gen(function*() {
        const log = yield* EventLog
        const paid = yield* pay("snapshot-paid")
        const open = chargeFor("snapshot-open", "2026-11")
        const charge = yield* claimedAndAttached(open, "pi_open")
        const { sequence: at } = yield* advanceAll()
        yield* settle(charge, succeeded(open.chargeKey, "pi_open"), "pi_open")
        const late = yield* mustClaim(chargeFor("snapshot-late", "2026-11"))
        yield* advanceAll()
        const states = new Map<ChargeKey, FeedEvent>()
        let pages = 0
        for (let after: ChargeKey | null = null;;) {
          const page: { readonly states: ReadonlyArray<FeedEvent>; readonly next: ChargeKey | null } = yield* log.snapshot(at, after, 3)
          for (const state of page.states) {
            assert.isFalse(states.has(state.chargeKey))
            states.set(state.chargeKey, state)
          }
          pages++
          if (page.next === null) break
          after = page.next
        }
        assert.isAbove(pages, 1)
        assert.deepStrictEqual([states.get(paid)?.to, states.get(open.chargeKey)?.to], ["succeeded", "attached"])
        assert.isUndefined(states.get(late.lease.chargeKey))
        const after = yield* readAll(at)
        const settled = [open.chargeKey, "succeeded"]
        const begun = (yield* (yield* Ledger).events(late.lease.chargeKey)).map(({ chargeKey, to }) => [chargeKey, to])
        assert.sameDeepMembers(after.map(({ chargeKey, to }) => [chargeKey, to]), [settled, ...begun])
      }))

    it.effect("knows its own epochs, and refuses cursors of another history", () =>
      Effect.gen(function*() {
        const log = yield* EventLog
        yield* log.beginEpoch("epoch-1")
        yield* log.beginEpoch("epoch-1")
        const { sequence } = yield* advanceAll()
        assert.deepStrictEqual(yield* log.read({ epoch: "epoch-1", sequence }, 10), [])
        const foreign = yield* reasonOf(log.read({ epoch: "epoch-2", sequence }, 10))
        assert.deepInclude(foreign, { _tag: "ReplayGap", why: "other_history", newest: sequence })
        assert.deepInclude(yield* reasonOf(log.read({ epoch: null, sequence: sequence + 1 }, 10)), { _tag: "ReplayGap", why: "other_history" })
      }))

    it.effect("refuses a cursor at whose place another event stands than it says, whatever its epoch", () =>
      Effect.gen(function*() {
        const log = yield* EventLog
        yield* log.beginEpoch("epoch-marks")
        yield* pay("marks-a")
        yield* pay("marks-b")
        const { sequence } = yield* advanceAll()
        const [other, stands, last] = yield* readAll(sequence - 3)
        const cursor = cursorAfter(stands!, "epoch-marks")
        assert.deepStrictEqual(cursor, {
          epoch: "epoch-marks", sequence: sequence - 1, event: { chargeKey: stands!.chargeKey, chargeSequence: stands!.chargeSequence, atMs: stands!.atMs }
        })
        const mark = cursor.event!
        assert.deepStrictEqual(yield* log.read(cursor, 10), [last!])
        assert.deepStrictEqual(yield* log.read(cursor, 1), [last!])
        assert.deepStrictEqual(yield* log.read({ ...cursor, epoch: null }, 10), [last!])
        assert.deepStrictEqual(yield* log.read(cursorAfter(last!, null), 10), [])
        // A reader may have kept whole milliseconds.
        assert.deepStrictEqual(yield* log.read({ ...cursor, event: { ...mark, atMs: Math.floor(mark.atMs) } }, 10), [last!])
        const foreign = { chargeKey: (yield* readAll(0))[0]!.chargeKey, chargeSequence: mark.chargeSequence + 1, atMs: mark.atMs + 1 }
        for (const event of [{ ...mark, chargeKey: foreign.chargeKey }, { ...mark, chargeSequence: foreign.chargeSequence }, { ...mark, atMs: foreign.atMs }, cursorAfter(other!, null).event!]) {
          for (const epoch of ["epoch-marks", null]) {
            const refused = yield* reasonOf(log.read({ ...cursor, epoch, event }, 10))
            assert.deepInclude(refused, { _tag: "ReplayGap", why: "other_history", after: sequence - 1, newest: sequence })
          }
        }
        // At the end of the log too, where there is nothing to give yet.
        assert.deepInclude(yield* reasonOf(log.read({ ...cursorAfter(last!, null), event: mark }, 10)), { _tag: "ReplayGap", why: "other_history" })
        assert.deepStrictEqual(yield* cursorAt(log, sequence), cursorAfter(last!, null))
        assert.deepStrictEqual(yield* cursorAt(log, 0), { epoch: null, sequence: 0 })
      }))

    it.effect("fails with the gap when the next event was trimmed, and still has a snapshot", () =>
      Effect.gen(function*() {
        const log = yield* EventLog
        const key = yield* pay("trimmed")
        // The last places are known to be settled only when the next look finds nothing new below them.
        yield* advanceAll()
        yield* advanceAll()
        const { sequence } = yield* advanceAll()
        assert.deepStrictEqual(yield* log.trim(2), { sequence, trimmedTo: sequence - 2 })
        assert.deepStrictEqual(yield* log.trim(5), { sequence, trimmedTo: sequence - 2 })
        assert.deepStrictEqual((yield* readAll(sequence - 2)).map((event) => event.sequence), [sequence - 1, sequence])
        // Trimmed exactly to its place: nothing stands there to compare with, and all that it is owed is there.
        const unknowable = { epoch: null, sequence: sequence - 2, event: { chargeKey: key, chargeSequence: 99, atMs: 0 } }
        assert.deepStrictEqual((yield* log.read(unknowable, 10)).map((event) => event.sequence), [sequence - 1, sequence])
        assert.deepStrictEqual(yield* cursorAt(log, sequence - 2), { epoch: null, sequence: sequence - 2 })
        assert.deepStrictEqual(yield* reasonOf(log.read({ epoch: null, sequence: sequence - 3 }, 10)), {
          _tag: "ReplayGap", after: sequence - 3, oldest: sequence - 1, newest: sequence, why: "trimmed"
        })
        yield* log.trim(0)
        assert.deepInclude(yield* reasonOf(log.read({ epoch: null, sequence: 0 }, 10)), { _tag: "ReplayGap", why: "trimmed", oldest: sequence + 1 })
        const page = yield* log.snapshot(sequence, null, 10_000)
        assert.deepInclude(page.states.find(({ chargeKey }) => chargeKey === key), { to: "succeeded", sequence: 0 })
        const own = yield* (yield* Ledger).events(yield* pay("after-trim"))
        assert.strictEqual((yield* advanceAll()).sequence, sequence + own.length)
        assert.deepStrictEqual((yield* readAll(sequence)).map((event) => event.sequence), own.map((_, index) => sequence + index + 1))
      }))
  })
