/** What a sweep says of a charge is found by its run, as what the run's own workers say. */
import { assert, it } from "@effect/vitest"
import { ChargeGateway, Ledger, RunMark, SpendCap } from "@purser/core"
import { ChargePipeline, Sweeper } from "@purser/engine"
import { chargeFor, MockGateway } from "@purser/testkit"
import { Effect, Fiber, Layer, Logger, References } from "effect"
import { TestClock } from "effect/testing"

const runId = "20260701T000000Z-00000001"
/** A ledger that knows which run a row belongs to, as those with run books do. */
const ofRun = Layer.effect(Ledger, Effect.map(Ledger, (ledger) => Ledger.of({
  ...ledger,
  takeExpired: (worker, limit) => Effect.tap(ledger.takeExpired(worker, limit), (taken) => Effect.sync(() => taken.forEach(({ request }) => RunMark.on(request, runId))))
}))).pipe(Layer.provide(Ledger.layerMemory))
const engine = Sweeper.layerNoDeps.pipe(
  Layer.provide(ChargePipeline.layer), Layer.provideMerge(Layer.mergeAll(ofRun, SpendCap.layerMemory, MockGateway.layer))
)

it.effect("lines of a sweep bear the run of each charge: what stays open, and what is put aside", () => {
  const open = chargeFor("cust_open", "2026-07")
  const other = chargeFor("cust_other", "2026-07")
  const lines: Array<string> = []
  const logger = Logger.make(({ fiber, logLevel, message }) => {
    const { chargeKey, runId } = fiber.getRef(References.CurrentLogAnnotations)
    lines.push([logLevel, runId, chargeKey === open.chargeKey ? "open" : chargeKey === other.chargeKey ? "other" : chargeKey, /^(?:charge \S+ )?(\w+)/.exec(String(message))?.[1]].join(" "))
  })
  return Effect.gen(function*() {
    const ledger = yield* Ledger
    yield* (yield* SpendCap).open({ ...open, expectedMinor: 1_000_000n, headroomPercent: 110 })
    yield* ledger.claim(open, "gone")
    const claimed = yield* ledger.claim(other, "gone")
    if (claimed._tag !== "Claimed") return yield* Effect.die(new Error("not claimed"))
    // An object of another amount than the row's.
    const dearer = chargeFor("cust_other", "2026-07", { amountMinor: other.amountMinor + 1 })
    const object = yield* (yield* ChargeGateway).create({ chargeKey: other.chargeKey, request: dearer, generation: 1 }, "")
    yield* ledger.attach({ lease: claimed.charge.lease, generation: 1, paymentIntentId: object.id, paymentMethod: "pm_card_visa" })
    yield* (yield* MockGateway).fail({ step: "create", when: "before" }, 100)
    yield* TestClock.adjust("1 minute")
    const sweep = yield* Effect.forkChild((yield* Sweeper).sweepOnce)
    yield* TestClock.adjust("10 minutes")
    yield* Fiber.join(sweep)
    assert.deepStrictEqual(new Set(lines), new Set([`Error ${runId} other quarantined`, `Warn ${runId} other stays`, `Warn ${runId} open stays`]))
  }).pipe(Effect.provide(engine), Effect.provideService(Logger.CurrentLoggers, new Set([logger])))
})
