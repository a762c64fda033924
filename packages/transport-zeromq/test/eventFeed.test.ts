/** The charge event feed over each network: every event once and in order, whatever is killed, lost, slow or trimmed. */
import { assert, describe, it } from "@effect/vitest"
import { cursorAfter, type FeedError, type TransportError, TransportError as TransportFailure } from "@purser/core"
import { allowKeys, Forwarder, generateKeyPair } from "@purser/transport-zeromq"
import { Effect, Fiber } from "effect"
import * as zmq from "zeromq"
import { eventAt, lossyRelay, networks, publishOn, quick, readerProcess, readOn, scriptedLog } from "./feedSupport.ts"
import { bare, freeAddress } from "./support.ts"

const factsOf = (error: FeedError | TransportError): Record<string, unknown> => ({ ...error.reason })

for (const [network, addresses] of Object.entries(networks)) {
  describe(`event feed over ${network}`, () => {
    it.live("a late joiner gets the snapshot, then the stream, without hole or repetition", () =>
      Effect.gen(function*() {
        const at = yield* addresses
        const { append, log } = scriptedLog()
        yield* append(137)
        yield* publishOn(log, at)
        const reader = yield* readOn({ _tag: "Snapshot" }, { ...at, pageMax: 3 })
        // Events go on while the snapshot is read.
        const states = []
        for (let notice = yield* reader.next; notice._tag !== "Synced"; notice = yield* reader.next) {
          if (notice._tag === "State") states.push(notice.event)
          yield* append(5)
        }
        assert.strictEqual(new Set(states.map(({ chargeKey }) => chargeKey)).size, states.length)
        const from = reader.last()
        assert.sameDeepMembers(states, Array.from({ length: Math.min(10, from) }, (_, index) => eventAt(from - index)))
        yield* append(500)
        yield* reader.readTo(from + 500)
        yield* append(7)
        assert.deepStrictEqual(yield* reader.readTo(from + 507), [])
      }), 60_000)

    it.live("gives the whole history, only what is new, or what follows a cursor", () =>
      Effect.gen(function*() {
        const at = yield* addresses
        const { append, log } = scriptedLog()
        yield* append(250)
        const { publisher } = yield* publishOn(log, at)
        const whole = yield* readOn({ _tag: "Beginning" }, { ...at, pageMax: 40 })
        assert.deepStrictEqual(yield* whole.readTo(250), [])
        assert.deepStrictEqual(yield* whole.next, { _tag: "Synced", cursor: cursorAfter(eventAt(250), publisher.epoch) })
        const fresh = yield* readOn({ _tag: "Now" }, at)
        assert.deepStrictEqual(yield* fresh.next, { _tag: "Synced", cursor: cursorAfter(eventAt(250), publisher.epoch) })
        const resumed = yield* readOn({ _tag: "After", cursor: { epoch: publisher.epoch, sequence: 240 } }, at)
        yield* append(10)
        assert.deepInclude(yield* fresh.until("Event"), { event: eventAt(251), epoch: publisher.epoch })
        yield* resumed.readTo(260)
        yield* whole.readTo(260)
      }), 60_000)

    it.live("goes on when the publisher is closed and another one begins, and tells the new epoch", () =>
      Effect.gen(function*() {
        const at = yield* addresses
        const { append, log } = scriptedLog()
        const first = yield* publishOn(log, at)
        const reader = yield* readOn({ _tag: "Beginning" }, { ...at, silentAfter: "100 millis" })
        yield* append(20)
        yield* reader.readTo(20)
        for (const round of [1, 2, 3]) {
          if (round === 1) yield* first.close
          yield* reader.until("Silent")
          yield* append(30)
          const again = yield* publishOn(log, at)
          yield* append(3)
          const said = yield* reader.readTo(20 + 33 * round)
          assert.deepInclude(said, { _tag: "Epoch", epoch: again.publisher.epoch })
          assert.notInclude(said.map(({ _tag }) => _tag), "Restarted")
          if (round < 3) yield* again.close
        }
      }), 60_000)

    it.live("a reader that comes back goes on after its last event", () =>
      Effect.gen(function*() {
        const at = yield* addresses
        const { append, log } = scriptedLog()
        yield* append(5)
        const { publisher } = yield* publishOn(log, at)
        let last = 0
        for (const round of [1, 2, 3, 4]) {
          const reader = yield* readOn({ _tag: "After", cursor: { epoch: publisher.epoch, sequence: last } }, at)
          yield* append(11)
          yield* reader.readTo(last + 9)
          last = reader.last()
          yield* reader.close
          assert.strictEqual(last, round * 9)
        }
      }), 60_000)

    it.live("loses nothing when everything is lost for a while, and says so", () =>
      Effect.gen(function*() {
        const at = yield* addresses
        const behind = yield* addresses
        const { append, log } = scriptedLog()
        yield* publishOn(log, at)
        const relay = yield* lossyRelay(at.endpoint, behind.endpoint)
        const reader = yield* readOn({ _tag: "Beginning" }, { endpoint: behind.endpoint, replayEndpoint: at.replayEndpoint })
        yield* append(10)
        yield* reader.readTo(10)
        // Level with the publisher by what it hears live, not by a page of the past.
        let to = 10
        const live = Effect.gen(function*() {
          yield* append(1)
          yield* reader.readTo(++to)
        })
        yield* live
        for (const window of [1, 2, 3]) {
          relay.lose = true
          const lost = relay.lost
          yield* append(200)
          to += 200
          while (relay.lost < lost + 4) yield* Effect.sleep("5 millis")
          relay.lose = false
          yield* append(1)
          const said = yield* reader.readTo(++to)
          assert.isTrue(said.some((notice) => notice._tag === "Lagged" && notice.reason === "lost"), `window ${window}`)
          yield* live
        }
      }), 60_000)

    it.live("tells a gap of trimmed history, and starts anew from a snapshot when asked to", () =>
      Effect.gen(function*() {
        const at = yield* addresses
        const { append, log, state } = scriptedLog()
        yield* append(100)
        const { publisher } = yield* publishOn(log, { ...at, keep: 20 })
        while (state.trimmedTo < 80) yield* Effect.sleep("5 millis")
        const cursor = { epoch: publisher.epoch, sequence: 50 }
        const failing = yield* readOn({ _tag: "After", cursor }, at)
        assert.deepStrictEqual(factsOf(yield* Effect.flip(failing.next)), { _tag: "ReplayGap", after: 50, oldest: 81, newest: 100, why: "trimmed" })
        const foreign = yield* readOn({ _tag: "After", cursor: { epoch: "of-another-database", sequence: 90 } }, at)
        assert.deepInclude(factsOf(yield* Effect.flip(foreign.next)), { _tag: "ReplayGap", why: "other_history" })
        const anew = yield* readOn({ _tag: "After", cursor }, { ...at, whenGap: "snapshot" })
        assert.deepStrictEqual(yield* anew.next, { _tag: "Restarted", after: 50, why: "trimmed" })
        const states = []
        for (let notice = yield* anew.next; notice._tag !== "Synced"; notice = yield* anew.next) states.push(notice._tag)
        assert.deepStrictEqual(states, Array.from({ length: 10 }, () => "State"))
        yield* append(5)
        yield* anew.readTo(105)
      }), 60_000)

    it.live("tells a reader that the log was put back, though its place has an event again and its epoch is known", () =>
      Effect.gen(function*() {
        const at = yield* addresses
        const { append, log, putBack } = scriptedLog()
        yield* append(20)
        const first = yield* publishOn(log, at)
        const { epoch } = first.publisher
        const staying = yield* readOn({ _tag: "Beginning" }, { ...at, silentAfter: "100 millis" })
        yield* staying.readTo(20)
        const waiting = yield* readOn({ _tag: "Now" }, { ...at, silentAfter: "100 millis", whenGap: "snapshot" })
        yield* waiting.until("Synced")
        // In the middle of its snapshot.
        const paging = yield* readOn({ _tag: "Snapshot" }, { ...at, pageMax: 3, silentAfter: "100 millis" })
        assert.strictEqual((yield* paging.next)._tag, "State")
        yield* first.close
        yield* staying.until("Silent")
        yield* waiting.until("Silent")
        yield* putBack(10, 15)
        yield* publishOn(log, at)
        const gap = { _tag: "ReplayGap", after: 20, oldest: 1, newest: 25, why: "other_history" }
        assert.deepStrictEqual(factsOf(yield* Effect.flip(Effect.forever(staying.next))), gap)
        const back = yield* readOn({ _tag: "After", cursor: cursorAfter(eventAt(20), epoch) }, at)
        assert.deepStrictEqual(factsOf(yield* Effect.flip(back.next)), gap)
        assert.deepStrictEqual(factsOf(yield* Effect.flip(Effect.forever(paging.next))), gap)
        // Who never heard an event has its place from the publisher, and what stands there.
        assert.deepInclude(yield* waiting.until("Restarted"), { after: 20, why: "other_history" })
        assert.deepInclude((yield* waiting.until("Synced")).cursor, { sequence: 25 })
        // Who is at a place that both histories have goes on, and who does not say what it has is served as before.
        const before = yield* readOn({ _tag: "After", cursor: cursorAfter(eventAt(10), epoch) }, at)
        yield* before.readTo(25)
        const older = yield* readOn({ _tag: "After", cursor: { epoch, sequence: 20 } }, at)
        yield* older.readTo(25)
      }), 60_000)

    it.live("a publisher whose log is put back while it lives begins another epoch, and skips nothing", () =>
      Effect.gen(function*() {
        const at = yield* addresses
        const { append, epochs, log, putBack } = scriptedLog()
        yield* append(19)
        const { publisher } = yield* publishOn(log, at)
        for (const [to, more] of [[10, 0], [8, 30]] as const) {
          const { epoch } = publisher
          const reader = yield* readOn({ _tag: "Beginning" }, at)
          const again = yield* readOn({ _tag: "Now" }, { ...at, whenGap: "snapshot" })
          yield* again.until("Synced")
          // One heard live, so that the publisher's own place is one that it told.
          yield* append(1)
          const { cursor } = yield* reader.until("Synced")
          yield* reader.readTo(cursor.sequence)
          yield* again.until("Event")
          const told = again.last()
          yield* reader.readTo(told)
          yield* putBack(to, more)
          assert.deepInclude(factsOf(yield* Effect.flip(Effect.forever(reader.next))), { _tag: "ReplayGap", after: told, why: "other_history" })
          assert.notStrictEqual(publisher.epoch, epoch)
          assert.deepInclude(yield* again.until("Restarted"), { after: told, why: "other_history" })
          assert.deepInclude((yield* again.until("Synced")).cursor, { epoch: publisher.epoch, sequence: to + more })
          yield* append(5)
          yield* again.readTo(to + more + 5)
        }
        // Or what was lost is no event, but that its life had begun: nobody who names that would be served any more.
        const { epoch } = publisher
        epochs.clear()
        yield* append(1)
        while (publisher.epoch === epoch) yield* Effect.sleep("5 millis")
        const fresh = yield* readOn({ _tag: "Now" }, at)
        assert.deepInclude((yield* fresh.until("Synced")).cursor, { epoch: publisher.epoch })
        yield* append(1)
        yield* fresh.until("Event")
      }), 60_000)

    it.live("a reader that is too slow is told, and gets everything", () =>
      Effect.gen(function*() {
        const at = yield* addresses
        const { append, log } = scriptedLog()
        const { publisher } = yield* publishOn(log, at)
        const reader = yield* readOn({ _tag: "Beginning" }, { ...at, bufferMax: 100 })
        const strict = yield* readOn({ _tag: "Beginning" }, { ...at, bufferMax: 100, whenSlow: "fail" })
        yield* append(1)
        yield* reader.readTo(1)
        yield* strict.readTo(1)
        // Both have to hear one more live, so that they are level before they stand still.
        yield* append(1)
        yield* reader.readTo(2)
        yield* strict.readTo(2)
        yield* append(2000)
        while ((yield* publisher.published) < 2002) yield* Effect.sleep("5 millis")
        // What was published has arrived when another reader has it.
        const witness = yield* readOn({ _tag: "Beginning" }, at)
        yield* witness.readTo(2002)
        yield* append(1)
        yield* witness.readTo(2003)
        const said = yield* reader.readTo(2003)
        assert.isTrue(said.some((notice) => notice._tag === "Lagged" && notice.reason === "overrun"))
        const error = yield* Effect.flip(Effect.forever(strict.next))
        assert.deepInclude(factsOf(error), { _tag: "SlowSubscriber", epoch: publisher.epoch, bufferMax: 100 })
        const again = yield* readOn({ _tag: "After", cursor: { epoch: publisher.epoch, sequence: strict.last() } }, at)
        yield* again.readTo(2003)
      }), 60_000)

    it.live("waits for a store that is down, at either side of a page", () =>
      Effect.gen(function*() {
        const at = yield* addresses
        const { append, log, state } = scriptedLog()
        yield* publishOn(log, at)
        yield* append(10)
        const reader = yield* readOn({ _tag: "Beginning" }, at)
        yield* reader.readTo(10)
        state.isDown = true
        const other = yield* readOn({ _tag: "Beginning" }, { ...at, silentAfter: "50 millis" })
        yield* append(10)
        const reading = yield* Effect.forkChild(other.readTo(20))
        yield* Effect.sleep("100 millis")
        assert.deepStrictEqual([reader.last(), other.last()], [10, 0])
        state.isDown = false
        yield* reader.readTo(20)
        yield* Fiber.join(reading)
      }), 60_000)
  })
}

describe("event feed", () => {
  it.live("passes through a forwarder, which may go and come back", () =>
    Effect.gen(function*() {
      const { append, log } = scriptedLog()
      const [frontend, backend, replayEndpoint] = [yield* freeAddress, yield* freeAddress, yield* freeAddress]
      yield* publishOn(log, { endpoint: `>${frontend}`, replayEndpoint })
      const reader = yield* readOn({ _tag: "Beginning" }, { endpoint: backend, replayEndpoint, silentAfter: "200 millis" })
      for (const round of [1, 2, 3]) {
        yield* Effect.scoped(Effect.gen(function*() {
          yield* Forwarder.open({ device: "forwarder", frontend, backend })
          for (let n = 1; n <= 5; n++) {
            yield* append(10)
            yield* reader.readTo((round - 1) * 60 + n * 10)
          }
        }))
        // Nobody passes these on.
        yield* append(10)
      }
      yield* Forwarder.open({ device: "forwarder", frontend, backend })
      yield* reader.readTo(180)
    }), 60_000)

  it.live("loses nothing when a reader's process stands still until its publisher drops what it cannot take", () =>
    Effect.gen(function*() {
      // Some 40 MB: more than the kernel and the high-water marks hold.
      const { append, log } = scriptedLog(20_000)
      const at = { endpoint: yield* freeAddress, replayEndpoint: yield* freeAddress }
      const { publisher } = yield* publishOn(log, { ...at, pageMax: 64, socket: { ...quick.socket, highWaterMark: 5 } })
      const reader = yield* readerProcess(at)
      yield* append(1)
      yield* reader.until((line) => line === "Event 1")
      yield* append(1)
      yield* reader.until((line) => line === "Event 2")
      yield* reader.signal("SIGSTOP")
      yield* append(2000)
      while ((yield* publisher.published) < 2002) yield* Effect.sleep("5 millis")
      yield* reader.signal("SIGCONT")
      const lines = yield* reader.until((line) => line === "Event 2002")
      const events = lines.filter((line) => line.startsWith("Event "))
      assert.deepStrictEqual(events, Array.from({ length: 2000 }, (_, index) => `Event ${index + 3}`))
      assert.isTrue(lines.some((line) => line.startsWith("Lagged lost")), lines.filter((line) => !line.startsWith("Event")).join())
    }), 120_000)

  it.live("with CURVE a listed key follows, and nobody else", () =>
    Effect.gen(function*() {
      const { append, log } = scriptedLog()
      const [fleet, alice, mallory] = [yield* generateKeyPair, yield* generateKeyPair, yield* generateKeyPair]
      const at = { endpoint: yield* freeAddress, replayEndpoint: yield* freeAddress }
      yield* append(10)
      yield* publishOn(log, { ...at, socket: { curve: { own: fleet, clients: allowKeys({ alice: alice.publicKey }) } } })
      const as = (own: typeof alice) => ({ ...at, silentAfter: "300 millis", socket: { ...quick.socket, curve: { own, serverKey: fleet.publicKey } } } as const)
      const reader = yield* readOn({ _tag: "Beginning" }, as(alice))
      yield* reader.readTo(10)
      yield* append(5)
      yield* reader.readTo(15)
      const stranger = yield* readOn({ _tag: "Beginning" }, as(mallory))
      assert.strictEqual((yield* stranger.next)._tag, "Silent")
    }), 60_000)

  it.live("answers what is no request with an error, and the next one with a page", () =>
    Effect.gen(function*() {
      const { append, log } = scriptedLog()
      const at = { endpoint: yield* freeAddress, replayEndpoint: yield* freeAddress }
      yield* append(3)
      const { publisher } = yield* publishOn(log, at)
      const dealer = yield* bare(() => new zmq.Dealer({ linger: 0 }))
      dealer.connect(at.replayEndpoint)
      const ask = (...frames: Array<string>) => Effect.promise(() => dealer.send(frames).then(() => dealer.receive()))
      for (const frames of [["ICANHAZ?", "not JSON"], ["ICANHAZ?"], ["HELLO", "{}"], ["ICANHAZ?", "{\"v\":2}"], ["ICANHAZ?", "{\"v\":1,\"id\":\"x\",\"limit\":1e9,\"want\":{\"head\":true}}"], ["x".repeat(100_000), "y", "z"]]) {
        const [verb, body] = yield* ask(...frames)
        assert.deepStrictEqual([String(verb), JSON.parse(String(body)).error.reason._tag], ["ERROR", "FeedRefused"])
      }
      const [verb, body] = yield* ask("ICANHAZ?", JSON.stringify({ v: 1, id: "1", limit: 1, want: { head: true } }))
      const { chargeKey, chargeSequence, atMs } = eventAt(3)
      const event = { chargeKey, chargeSequence, atMs }
      assert.deepStrictEqual([String(verb), JSON.parse(String(body))], ["KTHXBAI", { v: 1, id: "1", epoch: publisher.epoch, sequence: 3, event, next: null }])
      // A cursor with what stands at its place, or the whole event, or without it, as readers of before ask.
      const page = (after: object) =>
        Effect.map(ask("ICANHAZ?", JSON.stringify({ v: 1, id: "2", limit: 1, want: { after: { epoch: publisher.epoch, sequence: 3, ...after } } })), ([verb, body]) => [String(verb), JSON.parse(String(body))])
      const done = ["KTHXBAI", { v: 1, id: "2", epoch: publisher.epoch, sequence: 3, next: null }]
      for (const after of [{ event }, { event: eventAt(3) }, {}]) assert.deepStrictEqual(yield* page(after), done)
      const [refused, { error }] = yield* page({ event: { ...event, chargeSequence: 7 } })
      assert.deepStrictEqual([refused, error.reason._tag, error.reason.why], ["ERROR", "ReplayGap", "other_history"])
    }), 60_000)

  it.live("refuses remote addresses without encryption on either side", () =>
    Effect.gen(function*() {
      const { log } = scriptedLog()
      const published = yield* Effect.flip(publishOn(log, { endpoint: "tcp://10.0.0.1:5565" }))
      assert.instanceOf(published, TransportFailure)
      const reader = yield* readOn({ _tag: "Now" }, { ...quick, replayEndpoint: "tcp://10.0.0.1:5566" })
      assert.deepInclude(factsOf(yield* Effect.flip(reader.next)), { _tag: "Unauthorized" })
    }), 60_000)
})
