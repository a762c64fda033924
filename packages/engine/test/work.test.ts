/** What stands around the steps of a charge: what is taken up, what is in work already, what one run knows of itself, and the switch and the breaker before the processor. */
import { assert, describe, it } from "@effect/vitest"
import {
  ChargeError, type ChargeErrorReason, type ChargeGateway, type ChargeKey, ChargePause, ChargeRequest, type ClaimedCharge, GatewayTimeout, type GatewayPayment, GatewayUnavailable,
  InvalidRequest, LedgerError, LedgerUnavailable, Processing
} from "@purser/core"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Logger, Metric, References, Scheduler, Schema } from "effect"
import { TestClock } from "effect/testing"
import { dunningWaits } from "../src/DunningPolicy.ts"
import { EngineMetrics } from "../src/EngineMetrics.ts"
import { knowsOurKey, noteForeignKey, refusalOf } from "../src/internal/admission.ts"
import { forCharge, guardGateway } from "../src/internal/gate.ts"
import { type Entry, makeInWork } from "../src/internal/inWork.ts"
import { Held, type LeaseKeeper } from "../src/internal/leaseKeeper.ts"
import { extrasOf, nothingBegun, Standing } from "../src/internal/standing.ts"
import { Noting, notingKey } from "../src/internal/underItsRun.ts"
import { type PipelineSettings, retryPolicy } from "../src/PipelineOptions.ts"

const requestWith = (more: object = {}) => Schema.decodeUnknownSync(ChargeRequest)({
  namespace: "zmq-billing", customerId: "acme", billingPeriod: "2026-07", amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_1", ...more
})
const request = requestWith()
const { chargeKey } = request
const charge: ClaimedCharge = {
  lease: { chargeKey, worker: "w", epoch: 1 }, leaseLeftMs: 1000, request, state: "claimed", resumed: false, generation: 1, attempt: 1, paymentIntentId: null,
  paymentMethod: "pm_1", chosenMethod: null, declinedChargeId: null, sinceFirstClaimMs: 0, firstClaimedAtMs: 0
}
const order = { chargeKey, request, generation: 1, attempt: 1 }
const payment: GatewayPayment = {
  id: "pi_1", status: "unconfirmed", amountMinor: 1999, amountReceivedMinor: 0, currency: "usd", stripeCustomerId: "cus_1", chargeKey, generation: 1, chargeId: null, decline: null
}
const waiting = new Processing({ chargeKey, alreadySettled: false, paymentIntentId: "pi_1" })

/** Runs it with a turn before every effect, which takes two more, and stops it after so many turns. */
const stoppedAfter = Effect.fnUntraced(function*<A, E>(turns: number, effect: Effect.Effect<A, E>, atStop: () => void) {
  const fiber = yield* Effect.forkChild(Effect.provideService(effect, Scheduler.MaxOpsBeforeYield, 3), { startImmediately: true })
  for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
  atStop()
  yield* Fiber.interrupt(fiber)
})

const counted = (metric: Metric.Metric<never, { readonly count: number | bigint }>) => Effect.map(Metric.value(metric), ({ count }) => Number(count))
const fresh = () => Layer.succeedContext(Context.make(Metric.MetricRegistry, new Map()))

describe("a request is taken up", () => {
  const begins = Date.UTC(2026, 6, 1) - 14 * 3_600_000

  it("from when its period begins anywhere, or where it allows more", () => {
    assert.isUndefined(refusalOf(request, begins))
    assert.isUndefined(refusalOf(requestWith({ allowFuture: true }), 0))
    for (const early of [request, requestWith({ allowFuture: false })]) {
      const refusal = refusalOf(early, begins - 1)
      assert.deepStrictEqual({ ...refusal?.reason } as object, {
        _tag: "InvalidRequest", param: "billing_period", code: "period_not_begun", detail: "2026-07 has not begun, and the request does not allow that"
      })
      assert.deepStrictEqual([refusal?.chargeKey, refusal?.requestId], [chargeKey, null])
    }
  })

  it.effect("under our key, whatever the sender's is, which is counted and told", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual([request, requestWith({ senderKey: chargeKey }), requestWith({ senderKey: "theirs" })].map(knowsOurKey), [true, true, false])
      const told: Array<unknown> = []
      const logger = Logger.make(({ fiber, message }) => void told.push([message, fiber.getRef(References.CurrentLogAnnotations)]))
      yield* noteForeignKey(chargeKey).pipe(Effect.provide(Logger.layer([logger])))
      assert.strictEqual(yield* counted(EngineMetrics.foreignKeys), 1)
      assert.deepStrictEqual(told, [[["the sender's idempotency key differs from ours; ours is used"], { chargeKey }]])
    }).pipe(Effect.provide(fresh())))
})

describe("what is in work", () => {
  const failure = new LedgerError({ reason: new LedgerUnavailable({ operation: "test", detail: "away" }), chargeKey })

  it.effect("is done once for all equal requests that come meanwhile, and anew for those that come later", () =>
    Effect.gen(function*() {
      const inWork = makeInWork()
      const gate = yield* Deferred.make<Processing>()
      let runs = 0
      const work = () => Effect.suspend(() => (runs += 1, Deferred.await(gate)))
      const fibers = yield* Effect.forEach([requestWith(), requestWith(), requestWith({ senderKey: "other words, same terms" })], (one) =>
        Effect.forkChild(inWork.share(one, 0, work), { startImmediately: true }))
      assert.deepStrictEqual([inWork.size(), runs], [1, 1])
      assert.strictEqual(yield* counted(EngineMetrics.redeliveries.of("joined")), 2)
      const other = yield* Effect.forkChild(inWork.share(requestWith({ customerId: "other" }), 0, work), { startImmediately: true })
      assert.deepStrictEqual([inWork.size(), runs], [2, 2])
      yield* Deferred.succeed(gate, waiting)
      for (const fiber of [...fibers, other]) assert.strictEqual(yield* Fiber.join(fiber), waiting)
      assert.strictEqual(inWork.size(), 0)
      assert.strictEqual(yield* inWork.share(request, 0, work), waiting)
      assert.deepStrictEqual([inWork.size(), runs], [0, 3])
      assert.strictEqual(yield* counted(EngineMetrics.redeliveries.of("joined")), 2)
    }).pipe(Effect.provide(fresh())))

  it.effect("is not shared by a request with other terms, whose own work refuses it", () =>
    Effect.gen(function*() {
      const inWork = makeInWork()
      const first = yield* Effect.forkChild(inWork.share(request, 0, () => Effect.never), { startImmediately: true })
      assert.strictEqual(yield* Effect.flip(inWork.share(requestWith({ amountMinor: 5 }), 0, () => Effect.fail(failure))), failure)
      assert.strictEqual(inWork.size(), 1, "the first is still in work")
      yield* Fiber.interrupt(first)
      assert.strictEqual(inWork.size(), 0)
    }).pipe(Effect.provide(fresh())))

  it.effect("and fails, fails for all who wait, and is counted once", () =>
    Effect.gen(function*() {
      const inWork = makeInWork()
      const gate = yield* Deferred.make<Processing, LedgerError>()
      const fibers = yield* Effect.forEach([1, 2], () => Effect.forkChild(Effect.exit(inWork.share(request, 0, () => Deferred.await(gate))), { startImmediately: true }))
      yield* Deferred.fail(gate, failure)
      for (const fiber of fibers) assert.deepStrictEqual(yield* Fiber.join(fiber), Exit.fail(failure))
      assert.strictEqual(yield* counted(EngineMetrics.unsettled.of("LedgerUnavailable")), 1)
      assert.strictEqual(yield* Effect.flip(inWork.share(request, 0, () => Effect.fail(failure))), failure)
      assert.strictEqual(yield* counted(EngineMetrics.unsettled.of("LedgerUnavailable")), 2)
    }).pipe(Effect.provide(fresh())))

  it.effect("and is interrupted, leaves those who wait to ask again", () =>
    Effect.gen(function*() {
      const inWork = makeInWork()
      const [first, second] = yield* Effect.forEach([1, 2], () => Effect.forkChild(inWork.share(request, 0, () => Effect.never), { startImmediately: true }))
      yield* Fiber.interrupt(first!)
      const { reason } = yield* Effect.flip(Fiber.join(second!))
      assert.deepStrictEqual(reason._tag === "ChargeInProgress" ? reason.leaseLeftMs : reason._tag, 0)
      assert.strictEqual(inWork.size(), 0)
    }).pipe(Effect.provide(fresh())))

  it.effect("and is stopped between any two effects, is in work no more", () =>
    Effect.gen(function*() {
      const inWork = makeInWork()
      const sizes = new Set<number>()
      for (let turns = 0; turns < 12; turns++) {
        yield* stoppedAfter(turns, inWork.share(request, 0, () => Effect.never), () => sizes.add(inWork.size()))
        assert.strictEqual(inWork.size(), 0, `after ${turns} turns`)
      }
      assert.deepStrictEqual([...sizes], [0, 1], "it was stopped before it was in work, and in work")
    }))
})

describe("the work on a charge that is in work", () => {
  const failure = new LedgerError({ reason: new LedgerUnavailable({ operation: "test", detail: "away" }), chargeKey })
  const annotations = Effect.map(Effect.service(References.CurrentLogAnnotations), (all) => ({ ...all }))

  it.effect("is given the request as it came and when, and its entry, unless another's terms are in work", () =>
    Effect.gen(function*() {
      const inWork = makeInWork()
      const given: Array<unknown> = []
      const work = (of: ChargeRequest, nowMs: number, entry: Entry | undefined) => Effect.suspend(() => (given.push([of, nowMs, entry?.request]), Effect.never))
      const other = requestWith({ amountMinor: 5 })
      for (const [one, nowMs] of [[request, 7], [other, 8]] as const) yield* Effect.forkChild(inWork.share(one, nowMs, work), { startImmediately: true })
      assert.deepStrictEqual(given, [[request, 7, request], [other, 8, undefined]])
    }))

  it.effect("has its key on every line of it and of what follows its failure, which is over before others are told", () =>
    Effect.gen(function*() {
      const inWork = makeInWork()
      const gate = yield* Deferred.make<void>()
      const seen: Array<unknown> = []
      const note = (what: string) => Effect.map(annotations, (all) => void seen.push([what, all]))
      const noted = (end: Effect.Effect<Processing, LedgerError>) => (_: ChargeRequest, __: number, entry: Entry | undefined) =>
        Effect.flatMap(Effect.void, () => {
          entry!.note(new Noting<unknown>(charge, () => Effect.andThen(note("left"), Deferred.await(gate))))
          return Effect.andThen(note("work"), end)
        })
      const shared = inWork.share(request, 0, noted(Effect.fail(failure)))
      const first = yield* Effect.forkChild(Effect.flip(Effect.ensuring(shared, note("after"))), { startImmediately: true })
      const second = yield* Effect.forkChild(Effect.flip(inWork.share(request, 0, () => Effect.die("not shared"))), { startImmediately: true })
      assert.deepStrictEqual([inWork.size(), second.pollUnsafe()], [1, undefined], "what follows is not over")
      yield* Deferred.succeed(gate, undefined)
      for (const fiber of [first, second]) assert.strictEqual(yield* Fiber.join(fiber), failure)
      assert.strictEqual(yield* inWork.share(request, 0, noted(Effect.succeed(waiting))), waiting)
      const [within, around] = [{ place: "test", chargeKey }, { place: "test" }]
      assert.deepStrictEqual(seen, [["work", within], ["left", within], ["after", around], ["work", within]])
      assert.deepStrictEqual([inWork.size(), yield* annotations], [0, around])
    }).pipe(Effect.annotateLogs({ place: "test" }), Effect.provide(fresh())))

  it.effect("is left wherever it is stopped", () =>
    Effect.gen(function*() {
      const inWork = makeInWork()
      const left = new Set<number>()
      for (let turns = 0; turns < 16; turns++) {
        let begun = false
        let after: unknown
        const work = inWork.share(request, 0, (_, __, entry) => Effect.flatMap(Effect.void, () => {
          begun = true
          entry!.note(new Noting<unknown>(charge, () => Effect.sync(() => void left.add(turns))))
          return Effect.never
        }))
        yield* stoppedAfter(turns, Effect.ensuring(work, Effect.map(annotations, (all) => void (after = all))), () => undefined)
        assert.deepStrictEqual([inWork.size(), left.has(turns), after ?? { place: "test" }], [0, begun, { place: "test" }], `after ${turns} turns`)
      }
      assert.isAtLeast(left.size, 1)
    }).pipe(Effect.annotateLogs({ place: "test" })))
})

describe("the work on a charge", () => {
  it.effect("has its key on every line, and on no line after it, wherever it is stopped", () =>
    Effect.gen(function*() {
      const annotations = Effect.map(Effect.service(References.CurrentLogAnnotations), (all) => ({ ...all }))
      const seen: Array<unknown> = []
      const note = Effect.flatMap(annotations, (all) => Effect.sync(() => void seen.push(all)))
      for (let turns = 0; turns < 12; turns++) {
        let after: unknown
        const work = notingKey(new Noting(charge, () => note), () => Effect.andThen(note, Effect.never))
        yield* stoppedAfter(turns, Effect.ensuring(work, Effect.map(annotations, (all) => void (after = all))), () => undefined)
        assert.deepStrictEqual(after ?? { place: "test" }, { place: "test" }, `after ${turns} turns`)
      }
      assert.isAtLeast(seen.length, 12)
      assert.deepStrictEqual(yield* notingKey(new Noting(charge, () => Effect.die("not failed")), () => annotations), { place: "test", chargeKey })
      assert.deepStrictEqual(yield* annotations, { place: "test" })
      assert.strictEqual(yield* Effect.flip(notingKey(new Noting<string>(charge, () => note), () => Effect.fail("no"))), "no")
      for (const all of seen) assert.deepStrictEqual(all, { place: "test", chargeKey })
    }).pipe(Effect.annotateLogs({ place: "test" })))
})

const names = ["create", "find", "retrieve", "defaultPaymentMethod", "confirm", "cancel", "prepare"] as const
type Name = typeof names[number]

/** Answers every call with the arguments that it was given, or fails as it is told. */
const echo = (call: (name: Name) => Effect.Effect<void, ChargeError>, more: Partial<ChargeGateway["Service"]> = {}) => {
  const asked: Array<string> = []
  const answer = (name: Name, ...args: ReadonlyArray<unknown>) =>
    Effect.as(Effect.andThen(Effect.sync(() => void asked.push([name, ...args].join(" "))), call(name)), payment)
  const gateway: ChargeGateway["Service"] = {
    name: "echo",
    create: (_, suffix) => answer("create", suffix),
    find: (_, sinceMs) => answer("find", sinceMs),
    retrieve: (_, id) => answer("retrieve", id),
    defaultPaymentMethod: () => Effect.as(answer("defaultPaymentMethod"), "pm_1"),
    confirm: (_, { id }) => answer("confirm", id),
    cancel: (_, id) => answer("cancel", id),
    prepare: (_, id, suffix) => answer("prepare", id, suffix),
    ...more
  }
  return { asked, gateway }
}
const ask = (gateway: ChargeGateway["Service"], name: Name): Effect.Effect<unknown, ChargeError> => ({
  create: () => gateway.create(order, ":s"),
  find: () => gateway.find(order, 7),
  retrieve: () => gateway.retrieve(order, "pi_1"),
  defaultPaymentMethod: () => gateway.defaultPaymentMethod(order),
  confirm: () => gateway.confirm(order, tryOf),
  cancel: () => gateway.cancel(order, "pi_1"),
  prepare: () => gateway.prepare!(order, "pi_1", ":s")
})[name]()
const tryOf = { id: "pi_1", attempt: 1, paymentMethod: "pm_1", keySuffix: "" }
const allAsked = ["create :s", "find 7", "retrieve pi_1", "defaultPaymentMethod", "confirm pi_1", "cancel pi_1", "prepare pi_1 :s"]

/** Counts what is held. */
const keeping = () => {
  const now = { held: 0, of: new Set<ClaimedCharge>() }
  const leases: LeaseKeeper = {
    hold: noHold,
    take: (of) => {
      now.held += 1
      now.of.add(of)
      return new Held(of.lease, 1, 1)
    },
    letGo: (held) => {
      if (held !== undefined) now.held -= 1
    }
  }
  return { leases, now }
}
const noHold = () => <A, E>(wait: Effect.Effect<A, E>) => wait

describe("one run of the steps", () => {
  it("tells the claim what to do beside: to take room, and to name an object where there is one and its method is known", () => {
    assert.deepStrictEqual({ ...nothingBegun }, { hasRoom: false, unsent: undefined })
    const named = requestWith({ paymentMethod: "pm_1" })
    assert.deepStrictEqual(extrasOf(named, true, payment), { room: true, object: { id: "pi_1", paymentMethod: "pm_1" } })
    assert.deepStrictEqual([extrasOf(named, false, undefined), extrasOf(request, true, payment)], [{ room: false }, { room: true }])
  })

  it("is fresh for half of its lease, and keeps what it knows when it takes room", () => {
    const { gateway } = echo(() => Effect.void)
    const bare = new Standing(charge, 5000, false, noHold, gateway)
    assert.deepStrictEqual([5000, 5499, 5500, 9000].map((nowMs) => bare.isFresh(nowMs)), [true, true, false, false])
    const roomy = bare.withRoom()
    assert.deepStrictEqual([roomy.hasRoom, roomy.charge, roomy.askedAtMs], [true, charge, 5000])
    assert.strictEqual(roomy.withRoom(), roomy)
    assert.strictEqual(roomy.gateway, roomy.gateway)
  })

  it.effect("holds its lease during every call", () =>
    Effect.gen(function*() {
      const { asked, gateway } = echo(() => Effect.void)
      let holds = 0
      const run = new Standing(charge, 0, false, (of) => (wait) => Effect.suspend(() => (holds += of === charge ? 1 : 0, wait)), gateway).withRoom()
      assert.strictEqual(yield* run.hold(Effect.succeed(holds)), 0)
      assert.strictEqual(holds, 1)
      holds = 0
      const held = run.gateway
      for (const name of names) yield* ask(held, name)
      assert.deepStrictEqual([asked, holds, held.name], [allAsked, names.length, "echo"])
      const { prepare: _, ...bare } = gateway
      assert.isFalse("prepare" in forCharge(bare, noHold()), "what cannot prepare does not come to say that it can")
    }))
})

describe("the switch and the breaker", () => {
  const settings: PipelineSettings = {
    worker: "w1", retry: retryPolicy({ attemptsMax: 1, backoffMs: 0, backoffMaxMs: 0 }), handBackMs: 0, pollMs: 0, lookUpAfterMs: 0, restorePointMs: undefined,
    dunning: dunningWaits([]), outageAfter: 3, outageProbeMs: 1000
  }
  const errorOf = (reason: ChargeErrorReason) => new ChargeError({ reason, chargeKey, requestId: null })
  const timeout = errorOf(new GatewayTimeout({ operation: "test", timeoutMs: 1 }))
  const unavailable = (replayed: boolean) => errorOf(new GatewayUnavailable({ operation: "test", status: 500, replayed, detail: "no" }))
  const invalid = errorOf(new InvalidRequest({ param: null, code: null, detail: "wrong" }))

  /** A guarded processor that fails as `now.fails` says, and what was logged. */
  const guarded = Effect.fnUntraced(function*(options: { readonly probe?: Effect.Effect<void, ChargeError>; readonly change?: Partial<ChargePause["Service"]> } = {}) {
    const memory = Context.get(yield* Layer.build(ChargePause.layerMemory), ChargePause)
    const now: { fails: ChargeError | undefined } = { fails: undefined }
    const { asked, gateway } = echo(() => now.fails === undefined ? Effect.void : Effect.fail(now.fails), options.probe === undefined ? {} : { probe: options.probe })
    const guard = yield* guardGateway(gateway, { ...memory, ...options.change }, settings)
    // One after the other by itself and with a lease: they are counted together.
    let held = false
    const confirms = (...errors: ReadonlyArray<ChargeError | undefined>) =>
      Effect.forEach(errors, (error) => {
        now.fails = error
        held = !held
        const confirm = held ? guard.confirmHeld(keeping().leases, charge, order, tryOf) : guard.confirm(order, tryOf)
        return Effect.map(Effect.result(confirm), (answer) => assert.strictEqual(answer._tag === "Failure" ? answer.failure : undefined, error))
      }, { discard: true })
    const pauses = Effect.map(memory.view, (all) => all.map(({ actor, cause, reason }) => [cause, actor, reason]))
    return { asked, confirms, guard, memory, now, pauses }
  })
  const logged = () => {
    const lines: Array<string> = []
    return { lines, layer: Logger.layer([Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${String(message)}`))]) }
  }
  const outage = ["outage", "w1", `3 calls in a row without an answer; the last one: ${timeout.message}`]
  const noted = "Error the processor does not answer: charging pauses until it does"
  const ended = "Warn the processor answers again: charging goes on"

  it.effect("hold a lease during the confirm that it is of, however that ends and wherever it is stopped", () =>
    Effect.gen(function*() {
      const { leases, now } = keeping()
      const seen: Array<number> = []
      const ends: ReadonlyArray<Effect.Effect<GatewayPayment, ChargeError>> = [Effect.succeed(payment), Effect.fail(invalid), Effect.die("a bug"), Effect.never]
      for (const end of ends) {
        const guard = yield* guardGateway({ ...echo(() => Effect.void).gateway, confirm: () => Effect.suspend(() => (seen.push(now.held), end)) }, yield* ChargePause, settings)
        for (let turns = 0; turns < 12; turns++) {
          yield* stoppedAfter(turns, Effect.exit(guard.confirmHeld(leases, charge, order, tryOf)), () => undefined)
          assert.strictEqual(now.held, 0, `after ${turns} turns`)
        }
      }
      assert.deepStrictEqual([...new Set(seen)], [1])
      assert.deepStrictEqual([...now.of], [charge])
    }).pipe(Effect.provide(ChargePause.layerMemory)))

  it.effect("note an outage before the lease of the last confirm is let go, also where that is stopped meanwhile", () =>
    Effect.gen(function*() {
      const { leases, now } = keeping()
      const gate = yield* Deferred.make<void>()
      let heldMeanwhile: unknown
      const memory = yield* ChargePause
      const pause = (input: Parameters<typeof memory.pause>[0]) => Effect.suspend(() => {
        heldMeanwhile = now.held
        return Effect.andThen(Deferred.await(gate), memory.pause(input))
      })
      const guard = yield* guardGateway(echo(() => Effect.fail(timeout)).gateway, { ...memory, pause }, { ...settings, outageAfter: 1 })
      const confirm = yield* Effect.forkChild(guard.confirmHeld(leases, charge, order, tryOf), { startImmediately: true })
      const stopping = yield* Effect.forkChild(Fiber.interrupt(confirm), { startImmediately: true })
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(stopping)
      assert.deepStrictEqual([heldMeanwhile, now.held, (yield* memory.view).length], [1, 0, 1])
    }).pipe(Effect.provide(ChargePause.layerMemory)))

  it.effect("let every call but the confirm wait while charging is paused", () =>
    Effect.gen(function*() {
      const { asked, guard, memory } = yield* guarded()
      yield* memory.pause({ cause: "person", actor: "ops", reason: "an incident" })
      const fibers = yield* Effect.forEach(names, (name) => Effect.forkChild(ask(guard, name), { startImmediately: true }))
      assert.deepStrictEqual(asked, ["confirm pi_1"])
      yield* memory.resume({ cause: "person", actor: "ops", reason: "over" })
      yield* Effect.forEach(fibers, Fiber.join)
      assert.deepStrictEqual([...asked].sort(), [...allAsked].sort())
    }))

  it.effect("pause charging after so many calls in a row without an answer, and not after as many with one between them", () => {
    const { layer, lines } = logged()
    return Effect.gen(function*() {
      const { confirms, pauses } = yield* guarded({ probe: Effect.fail(timeout) })
      for (const answer of [undefined, invalid, unavailable(true)]) yield* confirms(timeout, timeout, answer, timeout, unavailable(false), answer)
      assert.deepStrictEqual([yield* pauses, lines], [[], []])
      yield* confirms(timeout, unavailable(false), timeout)
      assert.deepStrictEqual([yield* pauses, lines], [[outage], [noted]])
      yield* confirms(timeout, timeout, timeout)
      assert.deepStrictEqual([yield* pauses, lines], [[outage], [noted]], "said once")
    }).pipe(Effect.provide(layer))
  })

  it.effect("ask ever more slowly, up to a minute, whether it answers again, and count anew from then on", () => {
    const { layer, lines } = logged()
    return Effect.gen(function*() {
      const at: Array<number> = []
      let answers = false
      const { confirms, pauses } = yield* guarded({ probe: Effect.clockWith((clock) => Effect.suspend(() => (at.push(clock.currentTimeMillisUnsafe()), answers ? Effect.fail(invalid) : Effect.fail(timeout)))) })
      yield* confirms(timeout, timeout, timeout)
      yield* TestClock.adjust("10 minutes")
      for (const [index, ms] of at.entries()) {
        const waitMs = Math.min(1000 * 2 ** index, 60_000)
        const waited = ms - (at[index - 1] ?? 0)
        assert.isTrue(waited >= 0.8 * waitMs - 1 && waited <= 1.2 * waitMs + 1, `wait ${index} was ${waited} ms`)
      }
      assert.isAtLeast(at.length, 12)
      assert.deepStrictEqual(yield* pauses, [outage])
      answers = true
      yield* TestClock.adjust("72 seconds")
      assert.deepStrictEqual([yield* pauses, lines], [[], [noted, ended]], "a refusal is an answer")
      yield* confirms(timeout, timeout)
      assert.deepStrictEqual(yield* pauses, [])
      answers = false
      yield* confirms(timeout)
      assert.deepStrictEqual([yield* pauses, lines], [[outage], [noted, ended, noted]])
    }).pipe(Effect.provide(layer))
  })

  it.effect("take a processor that cannot be asked for one that answers, and leave an outage that another has ended", () =>
    Effect.gen(function*() {
      const { memory, pauses } = yield* guarded()
      yield* memory.pause({ cause: "outage", actor: "another", reason: "no answers" })
      yield* TestClock.adjust("799 millis")
      assert.strictEqual((yield* pauses).length, 1)
      yield* TestClock.adjust("401 millis")
      assert.deepStrictEqual(yield* pauses, [])
      let probes = 0
      const other = yield* guarded({ probe: Effect.suspend(() => (probes += 1, Effect.fail(timeout))) })
      yield* other.memory.pause({ cause: "outage", actor: "another", reason: "no answers" })
      yield* TestClock.adjust("100 millis")
      yield* other.memory.pause({ cause: "person", actor: "ops", reason: "an incident" })
      yield* other.memory.resume({ cause: "outage", actor: "another", reason: "answers" })
      yield* TestClock.adjust("5 minutes")
      assert.strictEqual(probes, 0)
    }))

  it.effect("end an outage also while a person has paused charging, whose pause stays", () =>
    Effect.gen(function*() {
      const { memory, pauses } = yield* guarded()
      yield* memory.pause({ cause: "person", actor: "ops", reason: "an incident" })
      yield* memory.pause({ cause: "outage", actor: "another", reason: "no answers" })
      yield* TestClock.adjust("1200 millis")
      assert.deepStrictEqual(yield* pauses, [["person", "ops", "an incident"]])
    }))

  it.effect("say who ended an outage, and why", () =>
    Effect.gen(function*() {
      const acts: Array<object> = []
      const { memory } = yield* guarded({ change: { resume: (act) => Effect.sync(() => (acts.push(act), false)) } })
      yield* memory.pause({ cause: "outage", actor: "another", reason: "no answers" })
      yield* TestClock.adjust("1200 millis")
      assert.deepStrictEqual(acts[0], { cause: "outage", actor: "w1", reason: "the processor answers again" })
    }))

  it.effect("fail no charge when the switch itself is away", () => {
    const { layer, lines } = logged()
    const away = Effect.fail(new LedgerError({ reason: new LedgerUnavailable({ operation: "pause", detail: "away" }), chargeKey: null as ChargeKey | null }))
    return Effect.gen(function*() {
      const unable = yield* guarded({ change: { pause: () => away, resume: () => away } })
      yield* unable.confirms(timeout, timeout, timeout)
      assert.deepStrictEqual([yield* unable.pauses, lines], [[], ["Warn the outage cannot be noted: the ledger is unavailable for pause: away"]])
      yield* unable.memory.pause({ cause: "outage", actor: "another", reason: "no answers" })
      yield* TestClock.adjust("1200 millis")
      assert.deepStrictEqual(lines.slice(1), ["Warn the end of the outage cannot be noted: the ledger is unavailable for pause: away"])
    }).pipe(Effect.provide(layer))
  })
})
