/** The switch and the breaker around the pipeline: work waits, nothing is refused, nothing is paid twice. */
import { assert, describe, it } from "@effect/vitest"
import {
  CardDeclined, ChargeError, ChargeGateway, ChargePause, GatewayTimeout, GatewayUnavailable, Ledger, SpendCap
} from "@purser/core"
import { ChargePipeline, PipelineOptions, retryPolicy, Sweeper } from "@purser/engine"
import { chargeFor, MockGateway } from "@purser/testkit"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"

const request = chargeFor("cust_1", "2026-07")
const person = { cause: "person", actor: "ops", reason: "an incident" } as const
const switches = ChargePause
const charge = (customer: string) => Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(chargeFor(customer, "2026-07")))
const calls = Effect.flatMap(MockGateway, (mock) => mock.calls)
const inForce = Effect.flatMap(switches, (pause) => Effect.map(pause.inForce, (pauses) => pauses.map(({ cause }) => cause)))
const silence = new GatewayTimeout({ operation: "test", timeoutMs: 1 })

/** A pipeline in memory whose switch a test reaches; `change` sits between it and the processor. */
const engine = (change: (gateway: ChargeGateway["Service"], pause: ChargePause["Service"]) => Partial<ChargeGateway["Service"]> = () => ({})) => {
  const changed = Layer.effect(ChargeGateway, Effect.gen(function*() {
    const gateway = yield* ChargeGateway
    return { ...gateway, ...change(gateway, yield* ChargePause) }
  }))
  return Sweeper.layerNoDeps.pipe(
    Layer.provideMerge(ChargePipeline.layer),
    Layer.provide(changed),
    Layer.provideMerge(Layer.mergeAll(Ledger.layerMemory, SpendCap.layerMemory, MockGateway.layer, ChargePause.layerMemory)),
    Layer.provide(PipelineOptions.layer({
      worker: "test", retry: retryPolicy({ attemptsMax: 4, backoffMs: 0, backoffMaxMs: 0 }), handBackMs: 0, outageAfter: 3, outageProbeMs: 1000
    })),
    Layer.orDie
  )
}

const openCap = Effect.flatMap(SpendCap, (cap) => cap.open({ ...request, expectedMinor: 1_000_000n, headroomPercent: 110 }))
const run = (title: string, layer: ReturnType<typeof engine>, test: Effect.Effect<void, unknown, Layer.Success<ReturnType<typeof engine>>>) =>
  it.effect(title, () => Effect.andThen(openCap, test).pipe(Effect.provide(layer)))

describe("a pause", () => {
  run("lets requests wait unclaimed, for hours, and each is paid once when it ends", engine(), Effect.gen(function*() {
    const pause = yield* switches
    assert.isTrue(yield* pause.pause(person))
    assert.isFalse(yield* pause.pause({ ...person, reason: "another" }))
    const waiting = yield* Effect.forEach(["a", "b", "a"], (customer) => Effect.forkChild(charge(customer)))
    yield* TestClock.adjust("5 hours")
    assert.deepStrictEqual(yield* calls, [])
    assert.isUndefined(yield* (yield* Ledger).find(chargeFor("a", "2026-07").chargeKey))
    assert.isTrue(waiting.every((fiber) => fiber.pollUnsafe() === undefined))
    assert.isTrue(yield* pause.resume(person))
    for (const fiber of waiting) assert.strictEqual((yield* Fiber.join(fiber))._tag, "Succeeded")
    assert.strictEqual(yield* MockGateway.payments("a", "2026-07"), 1)
    assert.strictEqual(yield* MockGateway.payments("b", "2026-07"), 1)
  }))

  run("that comes between two calls of a charge holds it there, with its lease", engine((gateway, pause) => ({
    create: (order, suffix) => Effect.tap(gateway.create(order, suffix), () => Effect.ignore(pause.pause(person)))
  })), Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(charge("cust_1"))
    yield* TestClock.adjust("10 minutes")
    assert.deepStrictEqual(yield* calls, ["create"])
    assert.deepStrictEqual(yield* (yield* Ledger).takeExpired("another", 10), [])
    yield* (yield* switches).resume(person)
    assert.strictEqual((yield* Fiber.join(fiber))._tag, "Succeeded")
    assert.strictEqual(yield* MockGateway.payments("cust_1", "2026-07"), 1)
  }))

  run("of a worker that is stopped meanwhile leaves the charge to others", engine((gateway, pause) => ({
    create: (order, suffix) => Effect.tap(gateway.create(order, suffix), () => Effect.ignore(pause.pause(person)))
  })), Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(charge("cust_1"))
    yield* TestClock.adjust("1 minute")
    yield* Fiber.interrupt(fiber)
    yield* (yield* switches).resume(person)
    assert.strictEqual((yield* (yield* Sweeper).sweepOnce).settled, 1)
    assert.strictEqual(yield* MockGateway.payments("cust_1", "2026-07"), 1)
  }))
})

describe("an outage", () => {
  let away = true
  let probes = 0
  const fail = (chargeKey: ChargeError["chargeKey"]) => Effect.fail(new ChargeError({ reason: silence, chargeKey, requestId: null }))
  const outage = engine((gateway) => ({
    create: (order, suffix) => Effect.suspend(() => away ? fail(order.chargeKey) : gateway.create(order, suffix)),
    probe: Effect.suspend(() => {
      probes += 1
      return away ? fail(null) : Effect.void
    })
  }))

  run("pauses charging by itself, is probed ever more slowly, and ends by itself; no charge fails", outage, Effect.gen(function*() {
    const fibers = yield* Effect.forEach(["a", "b", "c", "d", "e"], (customer) => Effect.forkChild(charge(customer)))
    yield* TestClock.adjust("100 millis")
    assert.deepStrictEqual(yield* inForce, ["outage"])
    yield* TestClock.adjust("1 hour")
    assert.isAtLeast(probes, 40)
    assert.isAtMost(probes, 120)
    assert.isTrue(fibers.every((fiber) => fiber.pollUnsafe() === undefined))
    away = false
    yield* TestClock.adjust("2 minutes")
    assert.deepStrictEqual(yield* inForce, [])
    for (const fiber of fibers) assert.strictEqual((yield* Fiber.join(fiber))._tag, "Succeeded")
    for (const customer of ["a", "b", "c", "d", "e"]) assert.strictEqual(yield* MockGateway.payments(customer, "2026-07"), 1)
  }))

  run("that another process noted is ended by this one", engine(), Effect.gen(function*() {
    yield* (yield* switches).pause({ cause: "outage", actor: "a worker that died", reason: "no answers" })
    const fiber = yield* Effect.forkChild(charge("cust_1"))
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual((yield* Fiber.join(fiber))._tag, "Succeeded")
    assert.deepStrictEqual(yield* inForce, [])
  }))

  run("does not end a person's pause", engine(), Effect.gen(function*() {
    const pause = yield* switches
    yield* pause.pause({ cause: "outage", actor: "worker", reason: "no answers" })
    yield* pause.pause(person)
    const fiber = yield* Effect.forkChild(charge("cust_1"))
    yield* TestClock.adjust("1 hour")
    assert.deepStrictEqual(yield* inForce, ["person"])
    assert.deepStrictEqual(yield* calls, [])
    yield* pause.resume(person)
    assert.strictEqual((yield* Fiber.join(fiber))._tag, "Succeeded")
  }))

  for (const [title, reason] of [
    ["declines", new CardDeclined({ code: "card_declined", declineCode: null, detail: "no" })],
    ["stored 5xx answers", new GatewayUnavailable({ operation: "test", status: 500, replayed: true, detail: "stored" })]
  ] as const) {
    run(`is not what ${title} are`, engine((gateway) => ({
      confirm: (order, input) => Effect.andThen(gateway.retrieve(order, input.id), Effect.fail(new ChargeError({ reason, chargeKey: order.chargeKey, requestId: null })))
    })), Effect.gen(function*() {
      for (const customer of ["a", "b", "c", "d", "e"]) yield* Effect.exit(charge(customer))
      assert.deepStrictEqual(yield* inForce, [])
    }))
  }
})
