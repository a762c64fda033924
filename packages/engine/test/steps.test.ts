/** The calls that can leave an unknown outcome, against a processor that answers as it is told: what is repeated, under which key, and when it is given up. */
import { assert, describe, it } from "@effect/vitest"
import {
  AuthenticationRequired, CapUnavailable, CardDeclined, ChargeError, type ChargeErrorReason, type ChargeGateway, ChargeRequest, type ClaimedCharge, GatewayTimeout, type GatewayPayment, GatewayUnavailable, InvalidRequest,
  ChargeQuarantined, KeyReused, LeaseLost, LedgerError, LedgerUnavailable, Measures, PermissionDenied, RateLimited, SpendCapError
} from "@purser/core"
import { Cause, Context, Effect, Layer, Metric, Schedule, Schema } from "effect"
import { dunningWaits } from "../src/DunningPolicy.ts"
import { EngineMetrics } from "../src/EngineMetrics.ts"
import { retryAfterFailure, untilStoreAnswers } from "../src/internal/backoff.ts"
import { type ConfirmTries, confirmUntilKnown, look, obtain, orderOf, patiently, prepareDraft } from "../src/internal/gatewaySteps.ts"
import { makeSteps, Onward } from "../src/internal/steps.ts"
import { type PipelineSettings, retryPolicy } from "../src/PipelineOptions.ts"

const request = Schema.decodeUnknownSync(ChargeRequest)({
  namespace: "zmq-billing", customerId: "acme", billingPeriod: "2026-07", amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_1"
})
const { chargeKey } = request
const charge = (more: Partial<ClaimedCharge> = {}): ClaimedCharge => ({
  lease: { chargeKey, worker: "w", epoch: 1 }, leaseLeftMs: 1000, request, state: "claimed", resumed: false, generation: 2, attempt: 3, paymentIntentId: null,
  paymentMethod: "pm_1", chosenMethod: null, declinedChargeId: null, sinceFirstClaimMs: 0, firstClaimedAtMs: 1_000_000, ...more
})
const payment = (more: Partial<GatewayPayment> = {}): GatewayPayment => ({
  id: "pi_1", status: "unconfirmed", amountMinor: 1999, amountReceivedMinor: 0, currency: "usd", stripeCustomerId: "cus_1", chargeKey, generation: 2, chargeId: null, decline: null, ...more
})
const settings = (more: Partial<PipelineSettings> = {}): PipelineSettings => ({
  worker: "w", retry: retryPolicy({ attemptsMax: 3, backoffMs: 0, backoffMaxMs: 0 }), handBackMs: 0, pollMs: 0, lookUpAfterMs: 5000, restorePointMs: undefined,
  dunning: dunningWaits([]), outageAfter: 10, outageProbeMs: 1000, ...more
})

const timeout = new GatewayTimeout({ operation: "test", timeoutMs: 1 })
const stored = new GatewayUnavailable({ operation: "test", status: 500, replayed: true, detail: "stored" })
const away = new GatewayUnavailable({ operation: "test", status: 500, replayed: false, detail: "away" })
const foreign = new KeyReused({ operation: "test", detail: "other parameters" })
const limited = new RateLimited({ retryAfterMs: null, limitReason: null })
const invalid = new InvalidRequest({ param: null, code: null, detail: "wrong" })
const denied = new PermissionDenied({ detail: "the key was taken away" })
const declinedAs = (declinedChargeId: string | null) => new CardDeclined({ code: "card_declined", declineCode: null, detail: "no", declinedChargeId })

type Answer = GatewayPayment | ChargeErrorReason | undefined
const errorOf = (reason: ChargeErrorReason) => new ChargeError({ reason, chargeKey, requestId: null })

/** Answers one after the other, the last for ever; tells what it was asked. */
const scripted = (script: Partial<Record<"create" | "find" | "retrieve" | "prepare" | "confirm", ReadonlyArray<Answer>>>) => {
  const asked: Array<string> = []
  const left = Object.fromEntries(Object.entries(script).map(([step, answers]) => [step, [...answers]]))
  const answer = (step: keyof typeof script, detail: string | number) =>
    Effect.suspend((): Effect.Effect<GatewayPayment | undefined, ChargeError> => {
      asked.push(`${step} ${detail}`.trim())
      const answers = left[step] ?? []
      const next = answers.length > 1 ? answers.shift() : answers[0]
      return next === undefined || "status" in next && "amountMinor" in next ? Effect.succeed(next) : Effect.fail(errorOf(next))
    })
  const object = (step: keyof typeof script, detail: string) => Effect.map(answer(step, detail), (found) => found!)
  const gateway: ChargeGateway["Service"] = {
    name: "scripted",
    create: (_, suffix) => object("create", suffix),
    find: (_, sinceMs) => answer("find", sinceMs),
    retrieve: (_, id) => object("retrieve", id),
    ...(script.prepare === undefined ? {} : { prepare: (_: unknown, id: string, suffix: string) => object("prepare", id + suffix) }),
    defaultPaymentMethod: () => Effect.die("not asked"),
    confirm: () => Effect.die("not asked"),
    cancel: () => Effect.die("not asked")
  }
  const tries = (oneCall = false): ConfirmTries => ({ oneCall, once: (suffix) => object("confirm", suffix), look: object("retrieve", "") })
  return { asked, gateway, tries }
}

/** The answer's id and state, or the reason of the failure with its words. */
const told = <E extends { readonly reason: { readonly _tag: string; readonly message: string } }>(call: Effect.Effect<GatewayPayment, E>) =>
  Effect.match(call, { onSuccess: ({ id, status }) => `${id} ${status}`, onFailure: ({ reason }) => `${reason._tag}: ${reason.message}` })

it("orders what was claimed", () => assert.deepStrictEqual(orderOf(charge()), { chargeKey, request, generation: 2, attempt: 3 }))

describe("a call that nobody repeats later", () => {
  const capAway = new SpendCapError({ reason: new CapUnavailable({ operation: "release", detail: "stopped" }), chargeKey })
  const ledgerAway = new LedgerError({ reason: new LedgerUnavailable({ operation: "release", detail: "stopped" }), chargeKey })
  const final = new LedgerError({ reason: new ChargeQuarantined({ detail: "looked at" }), chargeKey })
  /** Fails with these one after the other, then answers with how often it was asked. */
  const failing = (...errors: ReadonlyArray<LedgerError | SpendCapError>) => {
    let asked = 0
    return untilStoreAnswers(settings(), Effect.suspend(() => asked++ < errors.length ? Effect.fail(errors[asked - 1]!) : Effect.succeed(asked)))
  }

  it.effect("is made again while the store is away, whichever part of it", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* failing(), 1)
      assert.strictEqual(yield* failing(capAway, ledgerAway), 3)
    }))

  it.effect("ends after the last try with what was away, and at once with what is final", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(failing(ledgerAway, ledgerAway, capAway))
      assert.deepStrictEqual([error.chargeKey, { ...error.reason }], [chargeKey, { _tag: "LedgerUnavailable", operation: "cap", detail: capAway.message }])
      assert.strictEqual(yield* Effect.flip(failing(ledgerAway, ledgerAway, ledgerAway)), ledgerAway)
      assert.strictEqual(yield* Effect.flip(failing(final)), final)
    }))
})

describe("an object is obtained", () => {
  const obtained = (script: Parameters<typeof scripted>[0], of: Partial<ClaimedCharge> = {}, more: Partial<PipelineSettings> = {}) => {
    const { asked, gateway } = scripted(script)
    return Effect.map(told(obtain(gateway, settings(more), charge(of))), (end) => [end, ...asked])
  }

  it.effect("by making it, and without a look as long as the first key is remembered", () =>
    Effect.gen(function*() {
      const made = ["pi_1 unconfirmed", "create"]
      for (const of of [{}, { resumed: true, sinceFirstClaimMs: 4999 }, { resumed: false, sinceFirstClaimMs: 9999 }]) {
        assert.deepStrictEqual(yield* obtained({ create: [payment()] }, of), made)
      }
    }))

  it.effect("by a look since the first claim, when that is long ago, and made only when nothing is there", () =>
    Effect.gen(function*() {
      const late = { resumed: true, sinceFirstClaimMs: 5000 }
      assert.deepStrictEqual(yield* obtained({ find: [payment({ id: "pi_old" })], create: [payment()] }, late), ["pi_old unconfirmed", "find 700000"])
      assert.deepStrictEqual(yield* obtained({ find: [undefined], create: [payment()] }, late), ["pi_1 unconfirmed", "find 700000", "create"])
      assert.deepStrictEqual(yield* obtained({ find: [timeout, undefined], create: [payment()] }, late), ["pi_1 unconfirmed", "find 700000", "find 700000", "create"], "no create before the look is answered")
    }))

  it.effect("by a look in any case after a restore, since the restore point where that is earlier", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* obtained({ find: [undefined], create: [payment()] }, {}, { restorePointMs: 500_000 }), ["pi_1 unconfirmed", "find 200000", "create"])
      assert.deepStrictEqual(yield* obtained({ find: [undefined], create: [payment()] }, {}, { restorePointMs: 2_000_000 }), ["pi_1 unconfirmed", "find 700000", "create"])
    }))

  it.effect("under the same key again after an unknown answer, and under another one after a look where the key is spent", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* obtained({ create: [timeout, away, payment()] }), ["pi_1 unconfirmed", "create", "create", "create"])
      for (const spent of [stored, foreign]) {
        assert.deepStrictEqual(yield* obtained({ create: [spent, payment()], find: [undefined] }), ["pi_1 unconfirmed", "create", "find 700000", "create :r1"])
        assert.deepStrictEqual(yield* obtained({ create: [spent, spent, payment()], find: [undefined] }), ["pi_1 unconfirmed", "create", "find 700000", "create :r1", "find 700000", "create :r2"])
        assert.deepStrictEqual(yield* obtained({ create: [spent], find: [payment({ id: "pi_hidden" })] }), ["pi_hidden unconfirmed", "create", "find 700000"])
      }
    }))

  it.effect("or is not: a refusal ends it at once, anything else after the last try", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* obtained({ create: [invalid] }), [`InvalidRequest: ${invalid.message}`, "create"])
      for (const reason of [timeout, limited]) assert.deepStrictEqual(yield* obtained({ create: [reason] }), [`${reason._tag}: ${reason.message}`, "create", "create", "create"])
    }))
})

describe("a call that moves nothing", () => {
  it.effect("is repeated until it is answered or refused, or the tries are over", () =>
    Effect.gen(function*() {
      const of = (...answers: ReadonlyArray<Answer>) => {
        const { asked, gateway } = scripted({ retrieve: answers })
        return Effect.map(told(patiently(settings(), gateway.retrieve(orderOf(charge()), "pi_1"))), (end) => [end, asked.length])
      }
      assert.deepStrictEqual(yield* of(payment()), ["pi_1 unconfirmed", 1])
      assert.deepStrictEqual(yield* of(timeout, limited, payment()), ["pi_1 unconfirmed", 3])
      assert.deepStrictEqual(yield* of(invalid, payment()), [`InvalidRequest: ${invalid.message}`, 1])
      assert.deepStrictEqual(yield* of(timeout), [`GatewayTimeout: ${timeout.message}`, 3])
    }))

  it.effect("and is refused says nothing about the money", () =>
    Effect.gen(function*() {
      const of = (reason: ChargeErrorReason) => told(look(scripted({ retrieve: [reason] }).gateway, settings(), charge(), "pi_1"))
      assert.strictEqual(yield* of(denied), `UnexpectedAnswer: pipeline gave an answer that cannot be read: pi_1 cannot be read: ${denied.message}`)
      assert.strictEqual(yield* of(timeout), `GatewayTimeout: ${timeout.message}`)
    }))
})

describe("a fact that is recorded", () => {
  it.effect("is recorded anew as long as the failure may pass and the schedule lasts, and only then", () =>
    Effect.gen(function*() {
      const of = (failures: ReadonlyArray<"passes" | "stays">) => {
        let runs = 0
        const act = Effect.suspend(() => failures[runs++] === undefined ? Effect.succeed("done") : Effect.fail(failures[runs - 1]!))
        const options = { while: (failure: "passes" | "stays") => failure === "passes", schedule: Schedule.recurs(2) }
        return Effect.map(Effect.result(retryAfterFailure(act, options)), (end) => [end._tag === "Success" ? end.success : end.failure, runs])
      }
      assert.deepStrictEqual(yield* of([]), ["done", 1])
      assert.deepStrictEqual(yield* of(["stays"]), ["stays", 1])
      assert.deepStrictEqual(yield* of(["passes"]), ["done", 2])
      assert.deepStrictEqual(yield* of(["passes", "passes"]), ["done", 3])
      assert.deepStrictEqual(yield* of(["passes", "stays"]), ["stays", 2])
      assert.deepStrictEqual(yield* of(["passes", "passes", "passes"]), ["passes", 3])
    }))
})

describe("a draft is prepared", () => {
  const prepared = (...answers: ReadonlyArray<Answer>) => {
    const { asked, gateway } = scripted({ prepare: answers })
    return Effect.map(told(prepareDraft(gateway, settings(), charge(), "in_1")), (end) => [end, ...asked])
  }

  it.effect("until it is ready, past a spent key, a bounded number of times", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* prepared(payment()), ["pi_1 unconfirmed", "prepare in_1"])
      assert.deepStrictEqual(yield* prepared(timeout, payment()), ["pi_1 unconfirmed", "prepare in_1", "prepare in_1"])
      assert.deepStrictEqual(yield* prepared(stored, stored, payment()), ["pi_1 unconfirmed", "prepare in_1", "prepare in_1:r1", "prepare in_1:r2"])
      assert.deepStrictEqual(yield* prepared(timeout), [`GatewayTimeout: ${timeout.message}`, "prepare in_1", "prepare in_1", "prepare in_1"])
      assert.deepStrictEqual(yield* prepared(invalid), [`InvalidRequest: ${invalid.message}`, "prepare in_1"])
    }))

  it.effect("by no gateway that has none", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* told(prepareDraft(scripted({}).gateway, settings(), charge(), "in_1")),
        "UnexpectedAnswer: pipeline gave an answer that cannot be read: in_1 is a draft, which scripted cannot prepare")
    }))
})

describe("a step that may be done again", () => {
  class Told extends Onward<string, string, string, never> {
    readonly second: Effect.Effect<string, string>
    constructor(second: Effect.Effect<string, string>) {
      super()
      this.second = second
    }
    override again(cause: Cause.Cause<string>) {
      return Cause.hasFails(cause) ? this.second : Effect.failCause(cause)
    }
    override onSuccess(answer: string) {
      return Effect.succeed(answer)
    }
    override onEnd(cause: Cause.Cause<string>) {
      return Effect.succeed(`failed to the end: ${String(Cause.squash(cause))}`)
    }
  }

  for (const measures of [false, true]) {
    it.effect(`goes on from its first answer, else from its second: ${measures ? "measured" : "where nobody looks"}`, () =>
      Effect.gen(function*() {
        const { tried } = yield* makeSteps(() => 0)
        const answered = (first: Effect.Effect<string, string>, second: Effect.Effect<string, string>) => Effect.suspend(() => tried("settle", first, new Told(second)))
        assert.deepStrictEqual([
          yield* answered(Effect.succeed("first"), Effect.die("not asked")),
          yield* answered(Effect.fail("no"), Effect.succeed("second")),
          yield* answered(Effect.fail("no"), Effect.fail("never")),
          yield* answered(Effect.die("a bug"), Effect.die("not asked"))
        ], ["first", "second", "failed to the end: never", "failed to the end: a bug"])
        assert.strictEqual(Number((yield* Metric.value(EngineMetrics.stepSeconds.of("settle"))).count), measures ? 4 : 0)
      }).pipe(Effect.scoped, Effect.provide(Layer.succeedContext(Context.make(Measures, measures).pipe(Context.add(Metric.MetricRegistry, new Map()))))))
  }
})

describe("an object is confirmed", () => {
  const paid = payment({ status: "succeeded" })
  const confirmedBy = (of: ClaimedCharge, tries: ConfirmTries) => Effect.catchCause(tries.once(""), (cause) => confirmUntilKnown(settings(), of, tries, cause))
  const confirmed = (script: Parameters<typeof scripted>[0], of: Partial<ClaimedCharge> = {}, oneCall = false) => {
    const { asked, tries } = scripted(script)
    return Effect.map(told(confirmedBy(charge(of), tries(oneCall))), (end) => [end, ...asked])
  }
  const undecided = "UnexpectedAnswer: pipeline gave an answer that cannot be read: "

  it.effect("once, where it is answered", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* confirmed({ confirm: [paid] }), ["pi_1 succeeded", "confirm"])
      for (const refusal of [invalid, denied, declinedAs("ch_1")]) {
        assert.deepStrictEqual(yield* confirmed({ confirm: [refusal] }), [`${refusal._tag}: ${refusal.message}`, "confirm"])
      }
    }))

  it.effect("again only after the object was read, which decides", () =>
    Effect.gen(function*() {
      for (const status of ["succeeded", "processing", "requires_action", "canceled"] as const) {
        assert.deepStrictEqual(yield* confirmed({ confirm: [timeout], retrieve: [payment({ status })] }), [`pi_1 ${status}`, "confirm", "retrieve"])
      }
      for (const status of ["unconfirmed", "declined", "draft"] as const) {
        assert.deepStrictEqual(yield* confirmed({ confirm: [timeout, paid], retrieve: [payment({ status })] }), ["pi_1 succeeded", "confirm", "retrieve", "confirm"], status)
      }
      const refused = payment({ status: "declined", decline: { code: "card_declined", declineCode: null, detail: "no", chargeId: "ch_2" } })
      assert.deepStrictEqual(yield* confirmed({ confirm: [timeout], retrieve: [refused] }, { declinedChargeId: "ch_1" }), ["pi_1 declined", "confirm", "retrieve"], "the answer to this attempt")
      assert.deepStrictEqual(yield* confirmed({ confirm: [timeout, paid], retrieve: [refused] }, { declinedChargeId: "ch_2" }), ["pi_1 succeeded", "confirm", "retrieve", "confirm"], "that to the last")
      assert.deepStrictEqual(yield* confirmed({ confirm: [limited, paid] }), ["pi_1 succeeded", "confirm", "confirm"], "nothing was asked for")
    }))

  it.effect("under another key when an unpaid object's key is spent, and never where the key alone protects", () =>
    Effect.gen(function*() {
      const unpaid = { retrieve: [payment()] }
      for (const spent of [stored, foreign]) {
        assert.deepStrictEqual(yield* confirmed({ confirm: [spent, spent, paid], ...unpaid }), ["pi_1 succeeded", "confirm", "retrieve", "confirm :r1", "retrieve", "confirm :r2"])
      }
      assert.deepStrictEqual(yield* confirmed({ confirm: [stored], ...unpaid }, {}, true), [`GatewayUnavailable: ${stored.message}`, "confirm", "retrieve", "confirm", "retrieve", "confirm"])
      assert.deepStrictEqual(yield* confirmed({ confirm: [foreign], ...unpaid }, {}, true), [`KeyReused: ${foreign.message}`, "confirm", "retrieve"])
      assert.deepStrictEqual(yield* confirmed({ confirm: [foreign], retrieve: [paid] }, {}, true), ["pi_1 succeeded", "confirm", "retrieve"])
      assert.deepStrictEqual(yield* confirmed({ confirm: [timeout], retrieve: [payment({ status: "declined" })] }, {}, true), ["pi_1 declined", "confirm", "retrieve"])
    }))

  it.effect("a bounded number of times", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* confirmed({ confirm: [timeout], retrieve: [payment()] }), [`GatewayTimeout: ${timeout.message}`, "confirm", "retrieve", "confirm", "retrieve", "confirm"])
      assert.deepStrictEqual(yield* confirmed({ confirm: [timeout], retrieve: [away] }), [`GatewayUnavailable: ${away.message}`, "confirm", "retrieve"])
    }))

  it.effect("past the stored answer to an earlier attempt, which is none to this one", () =>
    Effect.gen(function*() {
      const old = declinedAs("ch_1")
      const before = { declinedChargeId: "ch_1" }
      assert.deepStrictEqual(yield* confirmed({ confirm: [old, old, paid] }, before), ["pi_1 succeeded", "confirm", "confirm :r1", "confirm :r2"])
      assert.deepStrictEqual(yield* confirmed({ confirm: [old] }, before), [`${undecided}the processor repeats an earlier decline: ${old.message}`, "confirm", "confirm :r1", "confirm :r2"])
      const authenticate = new AuthenticationRequired({ declinedChargeId: "ch_1", detail: "ask the customer" })
      assert.deepStrictEqual(yield* confirmed({ confirm: [authenticate, paid] }, before), ["pi_1 succeeded", "confirm", "confirm :r1"])
      assert.deepStrictEqual(yield* confirmed({ confirm: [declinedAs("ch_2")] }, before), [`CardDeclined: ${old.message}`, "confirm"])
      assert.deepStrictEqual(yield* confirmed({ confirm: [declinedAs(null)] }), [`CardDeclined: ${old.message}`, "confirm"])
      assert.deepStrictEqual(yield* confirmed({ confirm: [old] }, before, true), [`CardDeclined: ${old.message}`, "confirm"], "one call has no earlier attempt under its key")
    }))

  it.effect("no more by one who has lost its lease", () =>
    Effect.gen(function*() {
      const lost = new LedgerError({ reason: new LeaseLost({ operation: "confirm" }), chargeKey })
      for (const before of [[], [timeout]]) {
        const left = [...before]
        let asked = 0
        const once = () => Effect.suspend(() => {
          asked += 1
          const next = left.shift()
          return Effect.fail(next === undefined ? lost : errorOf(next))
        })
        assert.strictEqual(yield* Effect.flip(confirmedBy(charge(), { oneCall: false, once, look: Effect.succeed(payment()) })), lost)
        assert.strictEqual(asked, before.length + 1)
      }
    }))

  it.effect("and a key that is taken away in between leaves it undecided", () =>
    Effect.gen(function*() {
      const end = `${undecided}an earlier confirm is undecided: ${denied.message}`
      assert.deepStrictEqual(yield* confirmed({ confirm: [timeout, denied], retrieve: [payment()] }), [end, "confirm", "retrieve", "confirm"])
      assert.deepStrictEqual(yield* confirmed({ confirm: [denied] }, { resumed: true }), [end, "confirm"])
      assert.deepStrictEqual(yield* confirmed({ confirm: [limited, denied] }), [`PermissionDenied: ${denied.message}`, "confirm", "confirm"])
      assert.deepStrictEqual(yield* confirmed({ confirm: [timeout, invalid], retrieve: [payment()] }, { resumed: true }), [`InvalidRequest: ${invalid.message}`, "confirm", "retrieve", "confirm"])
    }))
})
