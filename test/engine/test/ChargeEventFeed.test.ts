/** The feed that a program reads from the store beside it: what a worker does is what a reader sees, in order, once. */
import { ChargeGateway, chargeKeyOf, type ChargeRequest, cursorAfter, EventFeed, EventLog, type FeedNotice, type FeedStart, Ledger, SpendCap } from "@purser/core"
import { ChargeEventFeed, ChargePipeline } from "@purser/engine"
import { chargeFor } from "@purser/testkit/chargeFor"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Queue, Stream } from "effect"

const stores = Layer.mergeAll(SpendCap.layerMemory, ChargeGateway.layerMemory, EventLog.layerMemory.pipe(Layer.provideMerge(Ledger.layerMemory)))
const app = Layer.merge(ChargePipeline.layer, ChargeEventFeed.layer).pipe(Layer.provideMerge(stores))

const open = (request: ChargeRequest) =>
  Effect.flatMap(SpendCap, (cap) => cap.open({ ...request, expectedMinor: 1_000_000n, headroomPercent: 110 }))

/** Notices as they come. */
const follow = Effect.fnUntraced(function*(start: FeedStart) {
  const feed = yield* EventFeed
  const notices = yield* Queue.unbounded<FeedNotice>()
  yield* Effect.forkScoped(Stream.runForEach(feed.follow(start), (notice) => Queue.offer(notices, notice)))
  return notices
})

const untilState = (notices: Queue.Dequeue<FeedNotice>, to: string) =>
  Effect.gen(function*() {
    const seen: Array<string> = []
    for (;;) {
      const notice = yield* Queue.take(notices)
      if (notice._tag !== "Event") continue
      seen.push(`${notice.event.customerId} ${notice.event.to}`)
      if (notice.event.to === to) return seen
    }
  })

describe("ChargeEventFeed", () => {
  it.live("shows how charges stand, and then what happens to them", () =>
    Effect.gen(function*() {
      const pipeline = yield* ChargePipeline
      const before = chargeFor("before", "2026-07")
      yield* open(before)
      yield* pipeline.charge(before)
      const notices = yield* follow({ _tag: "Snapshot" })
      assert.deepInclude(yield* Queue.take(notices), { _tag: "State" })
      assert.deepInclude(yield* Queue.take(notices), { _tag: "Synced" })
      yield* pipeline.charge(chargeFor("after", "2026-07"))
      const seen = yield* untilState(notices, "succeeded")
      assert.deepStrictEqual(seen.slice(-2), ["after attached", "after succeeded"])
      assert.isTrue(seen.every((line) => line.startsWith("after ")))
    }).pipe(Effect.scoped, Effect.provide(app)), 30_000)

  it.live("gives the history, what follows a cursor, and only what is new", () =>
    Effect.gen(function*() {
      const pipeline = yield* ChargePipeline
      const first = chargeFor("first", "2026-07")
      yield* open(first)
      yield* pipeline.charge(first)
      const whole = yield* follow({ _tag: "Beginning" })
      const history = yield* untilState(whole, "succeeded")
      const synced = yield* Queue.take(whole)
      const [last] = yield* (yield* EventLog).read({ epoch: null, sequence: history.length - 1 }, 1)
      assert.deepStrictEqual(synced, { _tag: "Synced", cursor: cursorAfter(last!, null) })
      const fresh = yield* follow({ _tag: "Now" })
      assert.deepStrictEqual(yield* Queue.take(fresh), synced)
      const resumed = yield* follow({ _tag: "After", cursor: { epoch: null, sequence: history.length - 1 } })
      yield* pipeline.charge(chargeFor("second", "2026-07"))
      const later = yield* untilState(fresh, "succeeded")
      assert.isTrue(later.every((line) => line.startsWith("second ")))
      assert.deepStrictEqual(yield* untilState(resumed, "succeeded"), ["first succeeded"])
      assert.deepStrictEqual(yield* untilState(resumed, "succeeded"), later)
    }).pipe(Effect.scoped, Effect.provide(app)), 30_000)

  it.live("fails with the gap when its cursor is of another history", () =>
    Effect.gen(function*() {
      const feed = yield* EventFeed
      const error = yield* Effect.flip(Stream.runDrain(feed.follow({ _tag: "After", cursor: { epoch: null, sequence: 7 } })))
      assert.deepInclude({ ...error.reason }, { _tag: "ReplayGap", after: 7, newest: 0 })
      assert.isFalse(error.isRetryable)
      // Or when its place has an event again, and it is another one.
      const ledger = yield* Ledger
      yield* ledger.claim(chargeFor("other", "2026-07"), "w")
      const other = { _tag: "After", cursor: { epoch: null, sequence: 1, event: { chargeKey: chargeKeyOf(chargeFor("mine", "2026-07")), chargeSequence: 1, atMs: 0 } } } as const
      assert.deepInclude({ ...(yield* Effect.flip(Stream.runDrain(feed.follow(other)))).reason }, { _tag: "ReplayGap", after: 1, why: "other_history" })
    }).pipe(Effect.provide(app)), 30_000)
})
