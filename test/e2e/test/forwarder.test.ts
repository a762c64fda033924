/**
 * What stands between a run and its workers, each a process of its own: a broker, and the devices of `purser forwarder`.
 * They are killed and started again in the middle of a run, and told to go at its end; the simulator's books judge.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { atDesk, csv, type Desk, paidAtLeast, tens } from "../src/Desk.ts"
import { freePort } from "../src/Proxy.ts"

const rows = 60
const address = Effect.map(freePort, (port) => `tcp://127.0.0.1:${port}`)
const hurried = { PURSER_REQUEST_TIMEOUT: "1 second", PURSER_REQUEST_RETRIES: "1000", PURSER_HEARTBEAT: "500 millis", PURSER_CLIENT_JOIN: "4", PURSER_PUB_SUB_WORKERS: "2" }

interface Between {
  readonly transport: string
  /** The command that stands between, given where clients and where workers find it. */
  readonly command: (front: string, back: string) => ReadonlyArray<string>
  readonly says: string
  /** Where a worker serves. */
  readonly worker: (front: string, back: string) => string
}

const kinds: Record<string, Between> = {
  "a broker": {
    transport: "majordomo",
    command: (front) => ["broker", "--endpoint", front],
    says: "a broker serves on",
    worker: (front) => front
  },
  "a queue": {
    transport: "router-dealer",
    command: (front, back) => ["forwarder", "--device", "queue", "--frontend", front, "--backend", back],
    says: "a forwarder passes messages on",
    worker: (_, back) => `>${back}`
  },
  "a streamer": {
    transport: "push-pull",
    command: (front, back) => ["forwarder", "--device", "streamer", "--frontend", front, "--backend", back],
    says: "a forwarder passes messages on",
    worker: (_, back) => `>${back}`
  },
  "a forwarder": {
    transport: "pub-sub",
    command: (front, back) => ["forwarder", "--device", "forwarder", "--frontend", front, "--backend", back],
    says: "a forwarder passes messages on",
    worker: (_, back) => `>${back}`
  }
}

const startBetween = Effect.fnUntraced(function*(at: Desk, { command, says }: Between, front: string, back: string) {
  const process = yield* at.start(command(front, back), hurried)
  yield* process.says(says)
  return process
})

const goes = Effect.fnUntraced(function*(process: Effect.Success<ReturnType<Desk["start"]>>) {
  yield* process.kill("SIGTERM")
  const { code, signal, stderr } = yield* process.ended
  assert.deepStrictEqual([code, signal], [0, null], stderr)
})

describe("between a run and its workers", () => {
  for (const [name, kind] of Object.entries(kinds)) {
    it.live(`${name} is killed twice under load: one payment per row, and SIGTERM ends it with 0`, () =>
      atDesk((at) =>
        Effect.gen(function*() {
          // Without idempotency keys every second call would be a second payment.
          yield* at.sim.setIdempotency(false)
          yield* at.sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", times: "always" }, action: { kind: "delay", at: "during", delayMs: 20 } })
          at.write("bills.csv", csv(...tens(rows)))
          const [front, back] = [yield* address, yield* address]
          const workers = yield* Effect.forEach([0, 1], () => at.start(["worker", "--transport", kind.transport, "--endpoint", kind.worker(front, back)], hurried), { concurrency: 2 })
          for (const worker of workers) yield* worker.says("worker on")
          const run = yield* at.start(["run", "bills.csv", "--json", "--workers", "0", "--transport", kind.transport, "--concurrency", "16"], { ...hurried, PURSER_ENDPOINT: front })
          for (const paid of [8, 24]) {
            const between = yield* startBetween(at, kind, front, back)
            yield* run.meanwhile(paidAtLeast(at.sim, paid))
            yield* between.kill("SIGKILL")
            yield* between.ended
          }
          const between = yield* startBetween(at, kind, front, back)
          const ended = yield* run.ended
          assert.deepStrictEqual([ended.code, ended.json?.["succeeded"]], [0, rows], ended.stderr)
          const books = yield* at.paid
          assert.deepStrictEqual([books.length, books.every(({ payments }) => payments === 1)], [rows, true])
          for (const process of [between, ...workers]) yield* goes(process)
        })), 180_000)
  }

  it.live("a forwarder and a broker that nobody has found end with 0 as well, also with messages waiting in them", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        at.write("bills.csv", csv(...tens(1)))
        for (const kind of [kinds["a streamer"]!, kinds["a broker"]!]) {
          const [front, back] = [yield* address, yield* address]
          const between = yield* startBetween(at, kind, front, back)
          const run = yield* at.purser(["run", "bills.csv", "--json", "--workers", "0", "--transport", kind.transport], {
            PURSER_ENDPOINT: front, PURSER_REQUEST_TIMEOUT: "300 millis", PURSER_REQUEST_RETRIES: "0", PURSER_RUN_PATIENCE: "1 second"
          })
          assert.notStrictEqual(run.code, 0)
          yield* goes(between)
        }
        assert.isEmpty(yield* at.paid)
      })), 120_000)

  it.live("an address that is taken, or not to be used without encryption, ends the command with 1 and its name", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        const [front, back] = [yield* address, yield* address]
        const between = yield* startBetween(at, kinds["a streamer"]!, front, back)
        for (const [args, text] of [
          [["broker", "--endpoint", front], front],
          [["forwarder", "--frontend", back, "--backend", yield* address], back],
          [["broker", "--endpoint", "tcp://0.0.0.0:5555"], "PURSER_ALLOW_PLAIN"]
        ] as const) {
          const { code, stderr } = yield* at.purser(args)
          assert.deepStrictEqual([code, stderr.includes(text)], [1, true], stderr)
        }
        yield* goes(between)
      })), 120_000)

  it.live("a run with workers of its own has a broker of its own", () =>
    atDesk((at) =>
      Effect.gen(function*() {
        at.write("bills.csv", csv(...tens(20)))
        const run = yield* at.purser(["run", "bills.csv", "--json", "--transport", "majordomo", "--workers", "2"])
        assert.deepStrictEqual([run.code, run.json?.["succeeded"]], [0, 20], run.stderr)
        const books = yield* at.paid
        assert.deepStrictEqual([books.length, books.every(({ payments }) => payments === 1)], [20, true])
      })), 120_000)
})
