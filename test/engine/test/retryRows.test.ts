/** The rows of a run that are asked for again: each takes its room before it moves, and one without room stands as it stood. */
import { assert, describe, it } from "@effect/vitest"
import { CapUnavailable, type ChargeKey, type ChargeRequest, Ledger, RunLedger, SpendCap, SpendCapError } from "@purser/core"
import { ChargePipeline, PipelineOptions, retryPolicy, retryRows } from "@purser/engine"
import { chargeFor, MockGateway } from "@purser/testkit"
import { Effect, Layer } from "effect"

const declining = (count: number) =>
  Array.from({ length: count }, (_, index) => chargeFor(`cust_${index}`, "2026-07", { amountMinor: 1000, paymentMethod: "pm_card_chargeDeclined" }))
const scope = declining(1)[0]!
const options = PipelineOptions.layer({ retry: retryPolicy({ attemptsMax: 4, backoffMs: 0, backoffMaxMs: 0 }) })
const stores = Layer.mergeAll(RunLedger.layerMemory.pipe(Layer.provideMerge(Ledger.layerMemory)), SpendCap.layerMemory, MockGateway.layer)
const engine = ChargePipeline.layer.pipe(Layer.provideMerge(Layer.mergeAll(stores, options)))

/** A cap of these rows, and each of them declined in the run `run`; lines from 2 on. */
const declined = Effect.fnUntraced(function*(requests: ReadonlyArray<ChargeRequest>) {
  yield* (yield* SpendCap).open({ ...scope, expectedMinor: BigInt(requests.length * 1000), headroomPercent: 100 })
  const book = yield* RunLedger
  yield* book.begin({ runId: "run", source: "a.csv" })
  yield* book.stage("run", requests.map((request, index) => ({ line: index + 2, chargeKey: request.chargeKey, request })))
  yield* book.plan("run")
  const pipeline = yield* ChargePipeline
  yield* Effect.forEach(requests, (request) => pipeline.charge(request), { concurrency: 100, discard: true })
})

/** Room that other charges take. */
const taken = (amountMinor: number) =>
  Effect.flatMap(SpendCap, (cap) => cap.reserve({ ...scope, chargeKey: chargeFor("other", "2026-07").chargeKey, attempt: 1, amountMinor }))
const room = Effect.flatMap(SpendCap, (cap) => Effect.map(cap.report(), ([one]) => one!.reservedMinor))
const standing = (requests: ReadonlyArray<ChargeRequest>) =>
  Effect.flatMap(Ledger, (ledger) => Effect.forEach(requests, ({ chargeKey }) => Effect.map(ledger.find(chargeKey), (found) => `${found!.state} ${found!.attempt} ${found!.outcome?._tag}`)))

const again = Effect.suspend(() => {
  const told: Array<string> = []
  return Effect.map(
    retryRows({
      runId: "run", states: ["declined"], actor: "ada", reason: "new cards",
      onNoRoom: ({ attempt, line, state }, { reason }) => Effect.sync(() => void told.push(`${line} ${state} ${attempt} ${reason._tag}`))
    }),
    (rows) => ({ ...rows, told })
  )
})

describe("the rows of a run that are asked for again", () => {
  it.effect("move as far as there is room; the others keep their decline and their attempt, and are told", () =>
    Effect.gen(function*() {
      const requests = declining(3)
      yield* declined(requests)
      yield* taken(1500)
      const { moved, retried, told, withoutRoom } = yield* again
      assert.deepStrictEqual([moved, withoutRoom, told], [1, 2, ["3 declined 1 CapExceeded", "4 declined 1 CapExceeded"]])
      assert.deepStrictEqual([...retried], [requests[0]!.chargeKey])
      assert.deepStrictEqual(yield* standing(requests), ["attached 2 undefined", "declined 1 Declined", "declined 1 Declined"])
      assert.strictEqual(yield* room, 2500n)
      // What was moved finds its room.
      assert.strictEqual((yield* (yield* ChargePipeline).charge(requests[0]!))._tag, "Declined")
      assert.strictEqual(yield* room, 1500n)
    }).pipe(Effect.provide(engine)))

  it.effect("stand as they stood under a closed cap", () =>
    Effect.gen(function*() {
      const requests = declining(2)
      yield* declined(requests)
      yield* (yield* SpendCap).close(scope)
      const { moved, retried, told } = yield* again
      assert.deepStrictEqual([moved, retried.size, told], [0, 0, ["2 declined 1 CapClosed", "3 declined 1 CapClosed"]])
      assert.deepStrictEqual(yield* standing(requests), ["declined 1 Declined", "declined 1 Declined"])
    }).pipe(Effect.provide(engine)))

  it.effect("are moved together, page by page, and each from its own attempt", () =>
    Effect.gen(function*() {
      const requests = declining(1201)
      yield* declined(requests)
      const ledger = yield* Ledger
      yield* ledger.reopen({ chargeKeys: [requests[0]!.chargeKey], from: ["declined"], actor: "ada", reason: "again" })
      yield* (yield* ChargePipeline).charge(requests[0]!)
      const asked: Array<readonly [number, number | undefined]> = []
      const { moved, retried } = yield* Effect.provideService(again, Ledger, {
        ...ledger,
        reopen: (input) => Effect.tap(ledger.reopen(input), () => Effect.sync(() => asked.push([input.chargeKeys.length, input.attempt])))
      })
      assert.deepStrictEqual([moved, retried.size], [1201, 1201])
      assert.deepStrictEqual(asked, [[1, 2], [499, 1], [500, 1], [201, 1]])
      assert.deepStrictEqual(new Set(yield* standing(requests)), new Set(["attached 3 undefined", "attached 2 undefined"]))
    }).pipe(Effect.provide(engine)))

  it.effect("leave no room taken where others have moved them meanwhile, and had them declined", () =>
    Effect.gen(function*() {
      const requests = declining(2)
      yield* declined(requests)
      const ledger = yield* Ledger
      const pipeline = yield* ChargePipeline
      const faster = Effect.gen(function*() {
        yield* ledger.reopen({ chargeKeys: [requests[0]!.chargeKey], from: ["declined"], actor: "ben", reason: "first" })
        yield* pipeline.charge(requests[0]!)
      })
      const book = yield* RunLedger
      const { moved, retried } = yield* Effect.provideService(again, RunLedger, {
        ...book,
        unpaid: (...page) => Effect.tap(book.unpaid(...page), () => Effect.orDie(faster))
      })
      assert.deepStrictEqual([moved, retried.size], [1, 2])
      assert.deepStrictEqual(yield* standing(requests), ["declined 2 Declined", "attached 2 undefined"])
      assert.strictEqual(yield* room, 1000n)
    }).pipe(Effect.provide(engine)))

  it.effect("that have their room are moved, though the cap is away for others: it fails then, and the same again goes on", () =>
    Effect.gen(function*() {
      const requests = declining(2)
      yield* declined(requests)
      const cap = yield* SpendCap
      const away = (chargeKey: ChargeKey) => new SpendCapError({ reason: new CapUnavailable({ operation: "reserve", detail: "away" }), chargeKey })
      const failed = yield* Effect.flip(Effect.provideService(again, SpendCap, {
        ...cap,
        reserve: (input) => input.chargeKey === requests[1]!.chargeKey ? Effect.fail(away(input.chargeKey)) : cap.reserve(input)
      }))
      assert.strictEqual(failed.message, away(requests[1]!.chargeKey).message)
      assert.deepStrictEqual(yield* standing(requests), ["attached 2 undefined", "declined 1 Declined"])
      assert.deepStrictEqual([(yield* again).moved, yield* room], [1, 2000n])
    }).pipe(Effect.provide(engine)))
})
