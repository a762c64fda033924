/**
 * What every transport must do, the memory one first. A transport may lose, repeat and reorder; it must answer each
 * submission with that request's own answer or a typed error, and must outlive what goes wrong on either side.
 *
 * Tests meet on events and never measure: on the live clock a deadline only ever has to come, not to come soon.
 */
import { assert, describe, it } from "@effect/vitest"
import {
  AuthenticationRequired, Canceled, CapAlreadyOpen, CapClosed, CapExceeded, CapMissing, CapUnavailable, CardDeclined, ChargeClient,
  ChargeConflict, ChargeError, type ChargeHandler, ChargeInProgress, type ChargeKey, type ChargeOutcome, ChargeQuarantined,
  type ChargeRequest, ChargeServer, Declined, GatewayTimeout, GatewayUnavailable, InvalidRequest, KeyInUse, KeyReused, LeaseLost,
  LedgerError, LedgerUnavailable, PermissionDenied, type PipelineError, Processing, RateLimited, Rejected, RequiresAction,
  SpendCapError, SubmitError, Succeeded, type TransportServices, UnexpectedAnswer
} from "@purser/core"
import { Context, Deferred, Effect, Exit, Fiber, Latch, Layer, Ref, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import { chargeFor } from "./chargeFor.ts"

/**
 * How long a client waits. `patient`: nothing of a test ever times out. `hurried`: a short deadline and so many attempts
 * that they do not end within a test. `brief`: a short deadline and few attempts. A transport on virtual time may have
 * one for all three.
 */
export type Patience = "patient" | "hurried" | "brief"

/** One network of a transport, whose two sides come and go apart. */
export interface TransportUnderTest {
  readonly client: (patience: Patience) => Layer.Layer<ChargeClient, unknown>
  readonly server: Layer.Layer<ChargeServer, unknown>
}

/** Makes a fresh network for one test; what it holds goes with the test's scope. */
export type MakeTransport = Effect.Effect<TransportUnderTest, unknown, Scope.Scope>

/** How the suite runs. */
export interface SuiteOptions {
  /** `test` for transports whose deadlines are on Effect's clock alone, `live` for those with sockets. */
  readonly clock: "test" | "live"
}

/** A network from a layer that has both sides in this process: it is built once for a test. */
const sharing = (layer: Layer.Layer<TransportServices, unknown>): MakeTransport =>
  Effect.map(Layer.build(layer), (context) => ({
    client: () => Layer.succeed(ChargeClient, Context.get(context, ChargeClient)),
    server: Layer.succeed(ChargeServer, Context.get(context, ChargeServer))
  }))

const paid = (request: ChargeRequest): ChargeOutcome =>
  new Succeeded({
    chargeKey: request.chargeKey,
    alreadySettled: false,
    paymentIntentId: `pi_${request.customerId}`,
    chargeId: null,
    amountReceivedMinor: request.amountMinor
  })
const pays: ChargeHandler = (request) => Effect.succeed(paid(request))

const connect = (network: TransportUnderTest, patience: Patience) =>
  Effect.map(Layer.build(network.client(patience)), (context) => Context.get(context, ChargeClient))

/** Serves until the returned scope is closed, or the test ends. */
const start = Effect.fnUntraced(function*(network: TransportUnderTest, handler: ChargeHandler) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const server = Context.get(yield* Layer.buildWithScope(network.server, scope), ChargeServer)
  yield* Effect.forkIn(server.serve(handler), scope)
  return scope
})

/** Every outcome, with and without the values that may be absent. */
const everyOutcome = (chargeKey: ChargeKey): ReadonlyArray<ChargeOutcome> => [
  new Succeeded({ chargeKey, alreadySettled: false, paymentIntentId: "pi_1", chargeId: "ch_1", amountReceivedMinor: 4900 }),
  new Succeeded({ chargeKey, alreadySettled: true, paymentIntentId: "pi_1", chargeId: null, amountReceivedMinor: 99_999_999 }),
  new Declined({ chargeKey, alreadySettled: false, paymentIntentId: "pi_1", code: "card_declined", declineCode: "lost_card", detail: "declined" }),
  new Declined({ chargeKey, alreadySettled: true, paymentIntentId: null, code: "expired_card", declineCode: null, detail: "Ihre Karte – abgelehnt" }),
  new Processing({ chargeKey, alreadySettled: false, paymentIntentId: "pi_1" }),
  new RequiresAction({ chargeKey, alreadySettled: false, paymentIntentId: "pi_1", detail: "3-D Secure" }),
  new Rejected({ chargeKey, alreadySettled: false, code: "cap_exceeded", detail: "no room" }),
  new Canceled({ chargeKey, alreadySettled: false, paymentIntentId: null, detail: "canceled" })
]

const terms = { amountMinor: 1900, currency: "usd", stripeCustomerId: "cus_1", paymentMethod: null }

/** Every error that a worker can answer with. */
const everyError = (chargeKey: ChargeKey): ReadonlyArray<PipelineError> => [
  ...[
    new LedgerUnavailable({ operation: "claim", detail: "refused" }),
    new ChargeConflict({ expected: terms, actual: { ...terms, amountMinor: 2100, paymentMethod: "pm_1" } }),
    new ChargeInProgress({ leaseLeftMs: 1500 }),
    new LeaseLost({ operation: "confirm" }),
    new ChargeQuarantined({ detail: "the amount differs" })
  ].map((reason) => new LedgerError({ reason, chargeKey })),
  new LedgerError({ reason: new LedgerUnavailable({ operation: "settle", detail: "" }), chargeKey: null }),
  ...[
    new CardDeclined({ code: "card_declined", declineCode: null, detail: "declined" }),
    new AuthenticationRequired({ detail: "authenticate" }),
    new InvalidRequest({ param: "customer", code: null, detail: "No such customer" }),
    new PermissionDenied({ detail: "the key lacks a permission" }),
    new RateLimited({ retryAfterMs: 250, limitReason: "global-rate" }),
    new GatewayTimeout({ operation: "create", timeoutMs: 30_000 }),
    new GatewayUnavailable({ operation: "confirm", status: 502, replayed: true, detail: "<html>" }),
    new KeyInUse({ operation: "create" }),
    new KeyReused({ operation: "create", detail: "other parameters" }),
    new UnexpectedAnswer({ operation: "retrieve", detail: "not JSON" })
  ].map((reason) => new ChargeError({ reason, chargeKey, requestId: "req_1" })),
  ...[
    new CapExceeded({ billingPeriod: "2026-07", currency: "usd", capMinor: 110, reservedMinor: 100, requestedMinor: 20 }),
    new CapMissing({ billingPeriod: "2026-07", currency: "usd" }),
    new CapClosed({ billingPeriod: "2026-07", currency: "usd" }),
    new CapAlreadyOpen({ billingPeriod: "2026-07", currency: "usd", capMinor: 110, requestedMinor: 120 }),
    new CapUnavailable({ operation: "reserve", detail: "refused" })
  ].map((reason) => new SpendCapError({ reason, chargeKey }))
]

const encodeError = Schema.encodeSync(SubmitError)
const facts = (error: SubmitError) => ({
  encoded: encodeError(error),
  message: error.message,
  isRetryable: error.isRetryable,
  outcome: error.outcome
})

/** Registers the suite for a transport, given as a layer of both sides or as a factory of networks. */
const suite = (name: string, transport: Layer.Layer<TransportServices, unknown> | MakeTransport, options: SuiteOptions = { clock: "test" }) => {
  const make = Effect.isEffect(transport) ? transport : sharing(transport)
  const passTime = options.clock === "test" ? TestClock.adjust("5 seconds") : Effect.sleep("10 millis")
  /** Lets time pass until a fiber or a latch is where the test wants it. */
  const waitFor = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(effect)
      while (fiber.pollUnsafe() === undefined) yield* Effect.andThen(passTime, Effect.yieldNow)
      return yield* Fiber.join(fiber)
    })
  const check = (title: string, body: (network: TransportUnderTest) => Effect.Effect<void, unknown, Scope.Scope>) => {
    const test = Effect.suspend(() => Effect.flatMap(make, body))
    if (options.clock === "test") it.effect(title, () => test)
    else it.live(title, () => test, 120_000)
  }

  describe(`transport: ${name}`, () => {
    check("carries every outcome unchanged", Effect.fnUntraced(function*(network) {
      const request = chargeFor("c_1", "2026-07")
      const sent = everyOutcome(request.chargeKey)
      yield* start(network, ({ amountMinor }) => Effect.succeed(sent[amountMinor - 1000]!))
      const client = yield* connect(network, "patient")
      const got = yield* Effect.forEach(sent, (_, index) => client.submit(chargeFor("c_1", "2026-07", { amountMinor: 1000 + index })))
      assert.deepStrictEqual(got, sent)
    }))

    check("carries every error of a worker unchanged", Effect.fnUntraced(function*(network) {
      const sent = everyError(chargeFor("c_1", "2026-07").chargeKey)
      yield* start(network, ({ amountMinor }) => Effect.fail(sent[amountMinor - 1000]!))
      const client = yield* connect(network, "patient")
      const got = yield* Effect.forEach(sent, (_, index) => Effect.flip(client.submit(chargeFor("c_1", "2026-07", { amountMinor: 1000 + index }))))
      assert.deepStrictEqual(got.map(facts), sent.map(facts))
    }))

    check("hands the request to the worker unchanged", Effect.fnUntraced(function*(network) {
      const seen = yield* Deferred.make<ChargeRequest>()
      yield* start(network, (request) => Effect.andThen(Deferred.succeed(seen, request), pays(request)))
      const request = chargeFor("ключ:%|🧾", "2026-Q3", { namespace: "n:s", item: "seat-1", currency: "jpy", senderKey: "1738.5", allowFuture: true })
      yield* (yield* connect(network, "patient")).submit(request)
      assert.deepStrictEqual(yield* Deferred.await(seen), request)
    }))

    check("gives each of many concurrent submissions its own answer", Effect.fnUntraced(function*(network) {
      yield* start(network, (request) => Effect.as(Effect.yieldNow, paid(request)))
      const client = yield* connect(network, "patient")
      const requests = Array.from({ length: 300 }, (_, index) => chargeFor(`c_${index}`, "2026-07", { amountMinor: 1000 + index }))
      const outcomes = yield* Effect.forEach(requests, (request) => client.submit(request), { concurrency: "unbounded" })
      assert.deepStrictEqual(outcomes, requests.map(paid))
    }))

    check("answers the same request twice when it is submitted twice at once", Effect.fnUntraced(function*(network) {
      const calls = yield* Ref.make(0)
      const both = yield* Latch.make(false)
      yield* start(network, (request) =>
        Effect.gen(function*() {
          if ((yield* Ref.updateAndGet(calls, (n) => n + 1)) === 2) yield* both.open
          yield* both.await
          return paid(request)
        }))
      const client = yield* connect(network, "patient")
      const request = chargeFor("c_1", "2026-07")
      const outcomes = yield* Effect.all([client.submit(request), client.submit(request)], { concurrency: "unbounded" })
      assert.deepStrictEqual(outcomes, [paid(request), paid(request)])
    }))

    check("answers for a handler that dies, and serves the next request", Effect.fnUntraced(function*(network) {
      const throws: ChargeHandler = () => {
        throw new Error("thrown by the handler")
      }
      yield* start(network, (request) =>
        request.customerId === "dies" ? Effect.die("defect") : request.customerId === "throws" ? throws(request) : request.customerId === "stops" ? Effect.interrupt : pays(request))
      const client = yield* connect(network, "patient")
      for (const customer of ["dies", "throws", "stops"]) {
        const error = yield* Effect.flip(client.submit(chargeFor(customer, "2026-07")))
        assert.deepStrictEqual([error._tag, error.reason._tag, error.isRetryable, error.outcome], ["LedgerError", "LedgerUnavailable", true, "unknown"])
      }
      const next = chargeFor("lives", "2026-07")
      assert.deepStrictEqual(yield* client.submit(next), paid(next))
    }))

    check("gives a typed error while no server is there, and works when one comes", Effect.fnUntraced(function*(network) {
      const client = yield* connect(network, "brief")
      const error = yield* waitFor(Effect.flip(client.submit(chargeFor("c_1", "2026-07"))))
      assert.deepStrictEqual([error._tag, error.isRetryable], ["TransportError", true])
      assert.include(["RetriesExhausted", "PeerUnreachable"], error.reason._tag)
      yield* start(network, pays)
      const request = chargeFor("c_2", "2026-07")
      const outcome = yield* waitFor(Effect.retry(client.submit(request), { while: ({ isRetryable }) => isRetryable }))
      assert.deepStrictEqual(outcome, paid(request))
    }))

    check("sends again when the first answer is slow", Effect.fnUntraced(function*(network) {
      const deliveries = yield* Ref.make(0)
      const second = yield* Latch.make(false)
      yield* start(network, (request) =>
        Effect.gen(function*() {
          if ((yield* Ref.updateAndGet(deliveries, (n) => n + 1)) === 2) yield* second.open
          yield* second.await
          return paid(request)
        }))
      const client = yield* connect(network, "hurried")
      const request = chargeFor("c_1", "2026-07")
      const submitted = yield* Effect.forkChild(client.submit(request))
      yield* waitFor(second.await)
      assert.deepStrictEqual(yield* waitFor(Fiber.join(submitted)), paid(request))
    }))

    check("never takes a late answer for another request's", Effect.fnUntraced(function*(network) {
      const deliveries = yield* Ref.make(0)
      const late = yield* Latch.make(false)
      const answeredLate = yield* Latch.make(false)
      yield* start(network, (request) =>
        Effect.gen(function*() {
          const first = request.customerId === "first" && (yield* Ref.updateAndGet(deliveries, (n) => n + 1)) === 1
          if (first) yield* Effect.andThen(late.await, answeredLate.open)
          return paid(request)
        }))
      const client = yield* connect(network, "hurried")
      const requests = ["first", "second", "third"].map((customer, index) => chargeFor(customer, "2026-07", { amountMinor: 1000 + index }))
      const first = yield* waitFor(client.submit(requests[0]!))
      yield* late.open
      yield* answeredLate.await
      const rest = yield* waitFor(Effect.forEach(requests.slice(1), (request) => client.submit(request)))
      assert.deepStrictEqual([first, ...rest], requests.map(paid))
    }))

    check("stays usable after a submission was interrupted", Effect.fnUntraced(function*(network) {
      const begun = yield* Latch.make(false)
      const gate = yield* Latch.make(false)
      yield* start(network, (request) =>
        request.customerId === "given-up" ? Effect.as(Effect.andThen(begun.open, gate.await), paid(request)) : pays(request))
      const client = yield* connect(network, "patient")
      const givenUp = yield* Effect.forkChild(client.submit(chargeFor("given-up", "2026-07")))
      yield* begun.await
      yield* Fiber.interrupt(givenUp)
      const requests = Array.from({ length: 20 }, (_, index) => chargeFor(`c_${index}`, "2026-07"))
      assert.deepStrictEqual(yield* Effect.forEach(requests, (request) => client.submit(request), { concurrency: 5 }), requests.map(paid))
      yield* gate.open
    }))

    check("a closing server answers what it has begun", Effect.fnUntraced(function*(network) {
      const begun = yield* Latch.make(false)
      const gate = yield* Latch.make(false)
      const server = yield* start(network, (request) => Effect.as(Effect.andThen(begun.open, gate.await), paid(request)))
      const client = yield* connect(network, "patient")
      const request = chargeFor("c_1", "2026-07")
      const submitted = yield* Effect.forkChild(client.submit(request))
      yield* begun.await
      const stopped = yield* Effect.forkChild(Scope.close(server, Exit.void))
      yield* Effect.yieldNow
      yield* gate.open
      assert.deepStrictEqual(yield* Fiber.join(submitted), paid(request))
      yield* Fiber.join(stopped)
    }))

    check("a client outlives its server's restart", Effect.fnUntraced(function*(network) {
      const client = yield* connect(network, "hurried")
      for (const round of [1, 2, 3]) {
        const server = yield* start(network, pays)
        const request = chargeFor(`c_${round}`, "2026-07")
        assert.deepStrictEqual(yield* waitFor(client.submit(request)), paid(request))
        yield* Scope.close(server, Exit.void)
      }
    }))
  })
}

/** The suite, and the way to run it on a layer that has both sides. */
export const TransportConformance = { suite, sharing } as const
