/**
 * The charge event feed and pub-sub through the command, every part a process of its own. Publisher, reader and workers
 * are killed and started again while a run is charging; the ledger's own history and the simulator's books judge.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { atDesk, csv, type Desk, paidAtLeast, tens } from "../src/Desk.ts"
import { freePort } from "../src/Proxy.ts"

const rows = 60
const address = Effect.map(freePort, (port) => `tcp://127.0.0.1:${port}`)

type Line = { readonly _tag: string; readonly epoch?: string; readonly event?: { readonly sequence: number; readonly chargeKey: string; readonly chargeSequence: number; readonly to: string } }
const linesOf = (stdout: string) => stdout.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as Line)
const eventsOf = (stdout: string) => linesOf(stdout).flatMap(({ _tag, epoch, event }) => _tag === "Event" && event !== undefined ? [{ ...event, epoch }] : [])

/** Every event that the ledger has, read without a publisher. */
const history = (at: Desk) =>
  Effect.map(at.purser(["events", "--local", "--from", "beginning", "--once", "--json"]), ({ code, stderr, stdout }) => {
    assert.strictEqual(code, 0, stderr)
    return eventsOf(stdout)
  })

const slowed = (at: Desk, delayMs = 20) =>
  at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", times: "always" }, action: { kind: "delay", at: "during", delayMs } })

describe("the charge event feed", () => {
  it.live("reaches a reader whole and in order, whichever of the two is killed and started again", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        // The run has to outlast the start of the second publisher.
        yield* slowed(at, 300)
        at.write("bills.csv", csv(...tens(rows)))
        const env = { PURSER_FEED_ENDPOINT: yield* address, PURSER_FEED_REPLAY_ENDPOINT: yield* address, PURSER_FEED_POLL: "20 millis" }
        const publish = Effect.gen(function*() {
          const publisher = yield* at.start(["feed"], env)
          yield* publisher.says("publishing the events")
          return publisher
        })
        const first = yield* publish
        const reader = yield* at.start(["events", "--from", "beginning", "--json"], env)
        yield* reader.says("Synced")
        const run = yield* at.start(["run", "bills.csv", "--json", "--concurrency", "8"])
        yield* run.meanwhile(paidAtLeast(at.sim, 8))
        yield* first.kill("SIGKILL")
        yield* first.ended
        yield* run.meanwhile(paidAtLeast(at.sim, 16))
        const second = yield* publish
        // The reader dies in the middle, too, and goes on after the last line that it had written whole.
        yield* reader.says("\"to\":\"succeeded\"")
        yield* reader.kill("SIGKILL")
        const { stdout } = yield* reader.ended
        const before = eventsOf(stdout.slice(0, stdout.lastIndexOf("\n")))
        const last = before.at(-1)!
        const again = yield* at.start(["events", "--after", String(last.sequence), "--epoch", last.epoch!, "--event", JSON.stringify(last), "--json"], env)
        const ended = yield* run.ended
        assert.deepStrictEqual([ended.code, ended.json?.["succeeded"]], [0, rows], ended.stderr)
        const whole = yield* history(at)
        // On a slow machine the first reader may have had all of them.
        yield* again.says(last.sequence === whole.length ? "Synced" : `"sequence":${whole.length},`)
        for (const process of [again, second]) yield* process.kill("SIGTERM")
        const { code, stdout: after } = yield* again.ended
        assert.deepStrictEqual([code, (yield* second.ended).code], [0, 0])
        const bare = (events: ReturnType<typeof eventsOf>) => events.map((event) => ({ ...event, epoch: undefined }))
        assert.deepStrictEqual(bare([...before, ...eventsOf(after)]), bare(whole))
        assert.deepStrictEqual(whole.map(({ sequence }) => sequence), whole.map((_, index) => index + 1))
        assert.strictEqual(whole.filter(({ to }) => to === "succeeded").length, rows)
      })), 180_000)

  it.live("is published by a worker too, also on the embedded database", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        at.write("bills.csv", csv(...tens(5)))
        const settings = Effect.gen(function*() {
          return { PURSER_ENDPOINT: yield* address, PURSER_FEED_ENDPOINT: yield* address, PURSER_FEED_REPLAY_ENDPOINT: yield* address, PURSER_FEED_POLL: "20 millis" }
        })
        const env = yield* settings
        const worker = yield* at.start(["worker", "--feed"], env)
        yield* worker.says("publishing the events")
        const reader = yield* at.start(["events", "--from", "now", "--json"], env)
        yield* reader.says("Synced")
        assert.strictEqual((yield* at.purser(["run", "bills.csv", "--workers", "0"], env)).code, 0)
        const whole = yield* history(at)
        yield* reader.says(`"sequence":${whole.length},`)
        yield* worker.kill("SIGTERM")
        assert.strictEqual((yield* worker.ended).code, 0)
        const embedded = { ...(yield* settings), PURSER_DATABASE_URL: "", PURSER_DATA_DIR: at.pathOf("embedded") }
        const alone = yield* at.start(["worker", "--feed"], embedded)
        yield* alone.says("publishing the events of pglite")
        const seen = yield* at.purser(["events", "--once", "--json"], embedded)
        assert.deepStrictEqual(linesOf(seen.stdout).map(({ _tag }) => _tag), ["Synced"], seen.stderr)
      })), 180_000)

  it.live("tells a reader that its place was trimmed, and gives it a snapshot when it asks for one", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        at.write("bills.csv", csv(...tens(8)))
        assert.strictEqual((yield* at.purser(["run", "bills.csv"])).code, 0)
        const told = yield* history(at)
        const newest = told.length
        const env = { PURSER_FEED_ENDPOINT: yield* address, PURSER_FEED_REPLAY_ENDPOINT: yield* address, PURSER_FEED_POLL: "20 millis" }
        const publisher = yield* at.start(["feed", "--keep", "3"], env)
        yield* publisher.says("publishing the events")
        const trimmed: Effect.Effect<string> = Effect.flatMap(at.purser(["events", "--after", "1", "--once"], env), ({ code, stderr }) =>
          code === 0 ? trimmed : Effect.succeed(stderr))
        assert.include(yield* trimmed, `the events after 1 were trimmed: ${newest - 2} to ${newest} can be read`)
        // Another event than the one at that place is one of another history.
        const ends = yield* Effect.forEach([told.at(-1)!, told.at(-2)!, {}], (event) =>
          Effect.map(at.purser(["events", "--after", String(newest), "--event", JSON.stringify(event), "--once"], env), ({ code, stderr }) => [code === 0, stderr] as const))
        assert.deepStrictEqual(ends.map(([isFine]) => isFine), [true, false, false])
        assert.include(ends[1]![1], `the events after ${newest} belong to another history`)
        assert.include(ends[2]![1], "--event takes the JSON of an event")
        const anew = yield* at.purser(["events", "--after", "1", "--restart", "--once", "--json"], env)
        assert.strictEqual(anew.code, 0, anew.stderr)
        assert.deepStrictEqual(linesOf(anew.stdout).map(({ _tag, event }) => event?.to ?? _tag), ["Restarted", ...Array.from({ length: 8 }, () => "succeeded"), "Synced"])
        // The ledger has lost nothing: its own audit trail is not the feed.
        const status = yield* at.purser(["status", "--json"])
        assert.strictEqual((JSON.parse(status.stdout) as { readonly charges: ReadonlyArray<{ readonly charges: number }> }).charges[0]!.charges, 8)
      })), 180_000)
})

describe("pub-sub", () => {
  it.live("two workers see every request and one is killed twice: one payment per row", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        // Without idempotency keys every second call would be a second payment.
        yield* at.sim.setIdempotency(false)
        yield* slowed(at)
        at.write("bills.csv", csv(...tens(rows)))
        const [endpoint, other] = [yield* address, yield* address]
        const hurried = { PURSER_REQUEST_TIMEOUT: "2 seconds", PURSER_REQUEST_RETRIES: "1000" }
        const work = Effect.fnUntraced(function*(where: string) {
          const worker = yield* at.start(["worker", "--transport", "pub-sub", "--endpoint", where], hurried)
          yield* worker.says("worker on")
          return worker
        })
        const steady = yield* work(other)
        const run = yield* at.start(["run", "bills.csv", "--json", "--workers", "0", "--transport", "pub-sub", "--concurrency", "16"], {
          ...hurried,
          PURSER_ENDPOINT: `${endpoint},${other}`
        })
        for (const paid of [8, 24]) {
          const worker = yield* work(endpoint)
          yield* run.meanwhile(paidAtLeast(at.sim, paid))
          yield* worker.kill("SIGKILL")
          yield* worker.ended
        }
        const ended = yield* run.ended
        assert.deepStrictEqual([ended.code, ended.json?.["succeeded"]], [0, rows], ended.stderr)
        const books = yield* at.paid
        assert.deepStrictEqual([books.length, books.every(({ payments }) => payments === 1)], [rows, true])
        yield* steady.kill("SIGTERM")
        const { code, stderr } = yield* steady.ended
        assert.strictEqual(code, 0, stderr)
      })), 180_000)

  for (const transport of ["pub-sub", "pair"]) {
    it.live(`${transport} in one process pays each row once`, () =>
      atDesk((at) =>
        Effect.gen(function*() {
          at.write("bills.csv", csv(...tens(20)))
          const ended = yield* at.purser(["run", "bills.csv", "--json", "--transport", transport])
          assert.deepStrictEqual([ended.code, ended.json?.["succeeded"]], [0, 20], ended.stderr)
          assert.deepStrictEqual((yield* at.paid).map(({ payments }) => payments), Array.from({ length: 20 }, () => 1))
        })), 120_000)
  }

  it.live("pair is refused where it would have to reach another process", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        at.write("bills.csv", csv(...tens(1)))
        const { code, stderr } = yield* at.purser(["run", "bills.csv", "--workers", "0", "--transport", "pair"])
        assert.strictEqual(code, 1)
        assert.include(stderr, "pair does not")
      })), 60_000)
})
