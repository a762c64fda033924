/** The order of a charge's steps, and what follows each answer: what is asked next, what is recorded, and what is left to others. */
import { assert, describe, it } from "@effect/vitest"
import {
  AuthenticationRequired, CapAlreadyOpen, CapClosed, CapExceeded, CapMissing, CapUnavailable, CardDeclined, ChargePause, type ChargeOutcome, type ClaimedCharge, GatewayTimeout, GatewayUnavailable, InvalidRequest, KeyReused, LedgerUnavailable,
  type GatewayPayment, PermissionDenied, Processing, UnexpectedAnswer
} from "@purser/core"
import { Cause, Context, Effect, Exit, Fiber, Layer, Metric } from "effect"
import { TestClock } from "effect/testing"
import { ChargePipeline } from "../src/ChargePipeline.ts"
import { EngineMetrics } from "../src/EngineMetrics.ts"
import {
  attached, capError, charge, chargeError, chargeKey, declined, declinedAs, inOrder, ledgerError, paid, payment, ran, request, requestWith, type Script, scripted, succeeded
} from "./support/scripted.ts"

const charged = (script: Script = {}, of = request) => ran(script, (pipeline) => pipeline.charge(of))
const resumed = (of: ClaimedCharge, script: Script = {}) => ran(script, (pipeline) => pipeline.resume(of))
const counted = (metric: Metric.Metric<never, { readonly count: number | bigint }>) => Effect.map(Metric.value(metric), ({ count }) => Number(count))
const claims = (of: ClaimedCharge, hasRoom?: boolean): Script["ledger"] => ({ claim: () => Effect.succeed({ _tag: "Claimed", charge: of, ...(hasRoom === undefined ? {} : { hasRoom }) }) })
const shows = (...objects: readonly [GatewayPayment, ...Array<GatewayPayment>]): Script["gateway"] => {
  const next = inOrder(...objects)
  return { retrieve: () => Effect.succeed(next()) }
}

const claim = "claim w false"
const reserve = "reserve zmq-billing 2026-07 usd 1 1999"
const ended = ["attach 1 pi_1 pm_1", "confirm pi_1 1 pm_1", "settle 1 pi_1 Succeeded"]
const away = ledgerError(new LedgerUnavailable({ operation: "test", detail: "stopped" }))
const timeout = chargeError(new GatewayTimeout({ operation: "test", timeoutMs: 1 }))
const invalid = chargeError(new InvalidRequest({ param: null, code: "resource_missing", detail: "no such customer" }))
const lost = (operation: string) => `LeaseLost: the lease was lost before ${operation}`

describe("a charge", () => {
  it.effect("takes its steps one after the other", () => Effect.gen(function*() {
    assert.deepStrictEqual((yield* charged()).all, ["Succeeded", claim, reserve, "create 1 1", ...ended])
    const { all, asked } = yield* charged({ watched: true })
    assert.deepStrictEqual(all, [
      "Succeeded", "(before-claim)", claim, "(after-claim)", reserve, "(after-reserve)", "(before-create)", "create 1 1", "(after-create)", "attach 1 pi_1 pm_1", "(after-attach)",
      "(before-confirm)", "confirm pi_1 1 pm_1", "(after-confirm)", "settle 1 pi_1 Succeeded", "(after-settle)"
    ])
    assert.strictEqual(asked.length, 15)
  }))

  it.effect("is handed back, with its key in the log, also where a request with other terms is in work", () => Effect.gen(function*() {
    const claimed = inOrder<ReturnType<NonNullable<NonNullable<Script["ledger"]>["claim"]>>>(Effect.never, Effect.succeed({ _tag: "Claimed", charge: charge() }))
    const { all, lines } = yield* ran({
      ledger: { claim: () => claimed(), handBack: () => Effect.as(Effect.logInfo("back"), true) }, cap: { reserve: () => Effect.fail(capError(new CapUnavailable({ operation: "reserve", detail: "away" }))) }
    }, (pipeline) => Effect.andThen(Effect.forkChild(pipeline.charge(requestWith({ amountMinor: 5, paymentMethod: "pm_1" })), { startImmediately: true }), pipeline.charge(request)))
    assert.deepStrictEqual([all.slice(1), lines], [[claim, claim, reserve, `hand back 7000 ${all[0]!.replace("CapUnavailable: ", "")}`], ["Info back"]])
  }))

  it.effect("takes its room with the claim where both are one store, and names an object that needs no call", () => Effect.gen(function*() {
    const store = {}
    const unsent = payment({ id: "one:1" })
    const oneStore = (ledger: Script["ledger"], more: Partial<Script> = {}): Script => ({ ...more, ledger: { ...ledger, store }, cap: { store } })
    const named: Script["gateway"] = { unsent: () => unsent }
    assert.deepStrictEqual((yield* charged(oneStore(claims(charge(), true)))).all, ["Succeeded", "claim w true", "create 1 1", ...ended])
    const without = yield* charged(oneStore(claims(charge(), false)))
    assert.deepStrictEqual(without.all, ["Succeeded", "claim w true", reserve, "create 1 1", ...ended])
    const begun = claims(charge({ state: "attached", paymentIntentId: "one:1" }), true)
    const paidOne = ["confirm one:1 1 pm_1", "settle 1 pi_1 Succeeded"]
    assert.deepStrictEqual((yield* charged(oneStore(begun, { gateway: named }))).all, ["Succeeded", "claim w true one:1 pm_1", ...paidOne])
    assert.deepStrictEqual((yield* charged(oneStore(begun, { gateway: named, watched: true }))).asked.slice(0, -4), [
      "(before-claim)", "claim w true one:1 pm_1", "(after-claim)", "(after-reserve)", "(before-create)", "(after-create)", "(after-attach)", "(before-confirm)"
    ])
    assert.deepStrictEqual((yield* charged(oneStore(claims(charge({ state: "attached", paymentIntentId: "one:1" }), false), { gateway: named, watched: true }))).asked.slice(0, 7), [
      "(before-claim)", "claim w true one:1 pm_1", "(after-claim)", "(before-create)", "(after-create)", "(after-attach)", reserve
    ])
    // One that an earlier holder has left was perhaps asked for: it is looked at.
    const left = claims(attached({ paymentIntentId: "one:1" }))
    assert.deepStrictEqual((yield* charged(oneStore(left, { gateway: { ...named, ...shows(paid) } }))).all.slice(0, 3), ["Succeeded", "claim w true one:1 pm_1", "look one:1"])
    // Whose name nobody knows beforehand: the customer's default method has to be read, or what was made before the restore has to be found.
    assert.deepStrictEqual((yield* charged({ gateway: named }, requestWith({}))).asked[0], claim)
    assert.deepStrictEqual((yield* charged({ gateway: named, settings: { restorePointMs: 1 } })).asked.slice(0, 4), [claim, reserve, "find", "create 1 1"])
    // What the store could not do in that act is done after it.
    assert.deepStrictEqual((yield* charged(oneStore(claims(charge()), { gateway: named, watched: true }))).asked.slice(1, 7), ["claim w true one:1 pm_1", "(after-claim)", reserve, "(after-reserve)", "(before-create)", "create 1 1"])
    // Stores that say nothing of where they are, and two that are apart.
    for (const [ours, theirs] of [[undefined, undefined], [store, {}], [store, undefined], [undefined, store]]) {
      assert.strictEqual((yield* charged({ ledger: ours === undefined ? {} : { store: ours }, cap: { store: theirs as object } })).asked[0], claim)
    }
  }))

  it.effect("that names no method reads the customer's default one once, before the object is tied to it", () => Effect.gen(function*() {
    const bare = charge({ paymentMethod: null })
    assert.deepStrictEqual((yield* charged({ ledger: claims(bare) })).all, [
      "Succeeded", claim, reserve, "create 1 1", "default method", "attach 1 pi_1 pm_default", "confirm pi_1 1 pm_default", "settle 1 pi_1 Succeeded"
    ])
    const again = attached({ paymentMethod: null, attempt: 2, declinedChargeId: "ch_no" })
    assert.deepStrictEqual((yield* resumed(again, { gateway: shows(declinedAs("ch_no")) })).all, [
      "Succeeded", "look pi_1", "reserve zmq-billing 2026-07 usd 2 1999", "default method", "attach 1 pi_1 pm_default", "confirm pi_1 2 pm_default", "settle 2 pi_1 Succeeded", "reserve by force 2 1999"
    ])
    const overtaken = yield* resumed(again, { gateway: shows(declinedAs("ch_no")), ledger: { attach: () => Effect.succeed({ _tag: "Lost", winnerId: "pi_2" }) } })
    assert.deepStrictEqual([overtaken.end, overtaken.asked.at(-2), overtaken.asked.at(-1)], [lost("attach"), "attach 1 pi_1 pm_default", "find row"])
  }))

  it.effect("that is there already is told as it stands", () => Effect.gen(function*() {
    const terms = { amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_1", paymentMethod: "pm_1" }
    const answers = [
      [{ _tag: "AlreadySettled", outcome: succeeded() }, "Succeeded"],
      [{ _tag: "InProgress", leaseLeftMs: 3000 }, "ChargeInProgress: another worker holds this charge for at most 3 s more"],
      [{ _tag: "Quarantined", detail: "another amount" }, "ChargeQuarantined: quarantined: another amount"],
      [{ _tag: "Unopened" }, "RevisionNotOpened: no such revision was opened: a charge is billed anew by an explicit act alone"],
      [{ _tag: "Conflict", expected: terms, actual: { ...terms, amountMinor: 1 } }, "ChargeConflict: the ledger holds 1999 usd of cus_1 with pm_1, the request says 1 usd of cus_1 with pm_1"]
    ] as const
    for (const [answer, words] of answers) {
      assert.deepStrictEqual((yield* charged({ ledger: { claim: () => Effect.succeed(answer) } })).all, [words, claim])
    }
  }))

  it.effect("counts once as settled, by its state, and as repeated by what was found", () => {
    const answers = inOrder<object>({ _tag: "Claimed", charge: charge() }, { _tag: "AlreadySettled", outcome: succeeded() }, { _tag: "InProgress", leaseLeftMs: 1 })
    const { layer } = scripted({ ledger: { claim: () => Effect.succeed(answers() as never) } })
    return Effect.gen(function*() {
      const pipeline = yield* ChargePipeline
      for (const _ of [1, 2, 3]) yield* Effect.exit(pipeline.charge(request))
      yield* pipeline.resume(attached())
      const found = yield* Effect.forEach([EngineMetrics.charges.of("succeeded"), EngineMetrics.redeliveries.of("settled"), EngineMetrics.redeliveries.of("held")], counted)
      assert.deepStrictEqual(found, [2, 1, 1])
    }).pipe(Effect.provide(layer))
  })
})

describe("room under the cap", () => {
  it.effect("that is not there ends the charge as a refusal, which gives back what nobody took", () => Effect.gen(function*() {
    const scope = { billingPeriod: "2026-07", currency: "usd" }
    for (const [reason, code] of [
      [new CapExceeded({ ...scope, capMinor: 1, reservedMinor: 0, requestedMinor: 1999 }), "cap_exceeded"], [new CapMissing(scope), "cap_missing"], [new CapClosed(scope), "cap_closed"],
      [new CapAlreadyOpen({ ...scope, capMinor: 1, requestedMinor: 2 }), "cap_already_open"]
    ] as const) {
      const outcomes: Array<ChargeOutcome> = []
      const { all } = yield* charged({
        cap: { reserve: () => Effect.fail(capError(reason)) }, ledger: { settle: ({ outcome }) => Effect.sync(() => (outcomes.push(outcome), { _tag: "Settled" as const, outcome })) }
      })
      assert.isFalse(outcomes.at(-1)!.alreadySettled)
      assert.deepStrictEqual(all, [`Rejected ${code} ${reason.message}`, claim, reserve, "settle 1 null Rejected", "release 1", "mark released 1"])
    }
    const { asked } = yield* charged({ cap: { reserve: () => Effect.fail(capError(new CapMissing(scope))) }, watched: true })
    assert.deepStrictEqual(asked.slice(2), ["(after-claim)", reserve, "(after-reserve)", "settle 1 null Rejected", "(after-settle)", "release 1", "mark released 1", "(after-release)"])
    const again = yield* resumed(attached(), { cap: { reserve: () => Effect.fail(capError(new CapClosed(scope))) } })
    assert.deepStrictEqual(again.asked, ["look pi_1", reserve, "settle 1 pi_1 Rejected", "release 1", "mark released 1"])
  }))

  it.effect("that cannot be asked for leaves the charge to others after a while", () => Effect.gen(function*() {
    const unable = capError(new CapUnavailable({ operation: "reserve", detail: "stopped" }))
    const { all } = yield* charged({ cap: { reserve: () => Effect.fail(unable) } })
    const left = [claim, reserve, `hand back 7000 ${unable.message}`]
    assert.deepStrictEqual(all, [`CapUnavailable: ${unable.message}`, ...left])
    // It may have been taken all the same, after another holder had settled the charge unpaid and given its room back.
    const lostTo = (outcome: ChargeOutcome | null): Script => ({
      cap: { reserve: () => Effect.fail(unable) }, ledger: { handBack: () => Effect.succeed(false), find: () => Effect.succeed({ chargeKey, attempt: 1, outcome } as never) }
    })
    assert.deepStrictEqual((yield* charged(lostTo(declined))).asked, [...left, "find row", "release 1", "mark released 1"])
    assert.deepStrictEqual((yield* charged(lostTo(null))).asked, [...left, "find row"])
    const stopped = scripted({ ...lostTo(declined), cap: { reserve: () => Effect.never } })
    yield* Effect.gen(function*() {
      const fiber = yield* Effect.forkChild((yield* ChargePipeline).charge(request))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(stopped.asked, [claim, reserve, "hand back 0 the worker was stopped", "find row", "release 1", "mark released 1"])
    }).pipe(Effect.provide(stopped.layer))
  }))

  it.effect("is left to its lease with the charge where something breaks inside", () => Effect.gen(function*() {
    const bug = new Error("Bug: test")
    const { asked, layer } = scripted({ gateway: { create: () => Effect.die(bug) } })
    const exit = yield* Effect.exit(Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(request)).pipe(Effect.provide(layer)))
    assert.deepStrictEqual([exit, asked], [Exit.die(bug), [claim, reserve, "create 1 1"]])
  }))

  it.effect("is given back after a decline, or later when the store is away just then, of each that is due", () => Effect.gen(function*() {
    const refuses: Script["gateway"] = { confirm: () => Effect.fail(chargeError(new CardDeclined({ code: "card_declined", declineCode: "insufficient_funds", detail: "no", declinedChargeId: "ch_no" }))) }
    const { all } = yield* charged({ gateway: refuses })
    assert.deepStrictEqual(all.slice(-4), ["confirm pi_1 1 pm_1", "settle 1 pi_1 Declined next 3600000", "release 1", "mark released 1"])
    const later = yield* charged({ gateway: refuses, ledger: { markReleased: () => Effect.fail(away) } })
    assert.deepStrictEqual([later.end, later.lines], ["Declined card_declined no", [`Warn room under the cap is given back later: ${away.message}`]])
    const { asked, layer } = scripted({ ledger: { releaseDue: () => Effect.succeed([{ chargeKey, attempt: 1 }, { chargeKey, attempt: 2 }]) }, watched: true })
    assert.strictEqual(yield* Effect.flatMap(ChargePipeline, (pipeline) => pipeline.releaseDue(10)).pipe(Effect.provide(layer)), 2)
    assert.deepStrictEqual(asked.toSorted(), ["(after-release)", "(after-release)", "mark released 1", "mark released 2", "release 1", "release 2"])
  }))

  it.effect("is taken again by force for a payment that is found late, loudly where it does not fit", () => Effect.gen(function*() {
    const late = (cap: Script["cap"]) => {
      const { asked, layer, lines } = scripted({ cap, gateway: shows(paid) })
      return Effect.gen(function*() {
        yield* (yield* ChargePipeline).resume(attached())
        return [asked.slice(1), lines, yield* counted(EngineMetrics.overruns)]
      }).pipe(Effect.provide(layer))
    }
    const steps = ["settle 1 pi_1 Succeeded", "reserve by force 1 1999"]
    assert.deepStrictEqual(yield* late({}), [steps, [], 0])
    assert.deepStrictEqual(yield* late({ reserveByForce: () => Effect.succeed(150n) }), [steps, ["Error 2026-07 usd is 1.50 usd over its cap"], 1])
    const unable = capError(new CapMissing({ billingPeriod: "2026-07", currency: "usd" }))
    assert.deepStrictEqual(yield* late({ reserveByForce: () => Effect.fail(unable) }), [steps, [`Error a payment holds no room under the cap: ${unable.message}`], 0])
    // Nobody asks for it later: it is asked for again where the store was away for a moment.
    const gone = Effect.fail(capError(new CapUnavailable({ operation: "test", detail: "stopped" })))
    assert.deepStrictEqual(yield* late({ reserveByForce: inOrder<typeof gone | Effect.Effect<bigint>>(gone, Effect.succeed(0n)) }), [[...steps, steps[1]], [], 0])
    assert.deepStrictEqual((yield* resumed(attached(), { gateway: shows(payment({ status: "processing" })) })).asked.slice(1), ["settle 1 pi_1 Processing"])
    // By a first holder too, where the ledger says that the lease was another's by then.
    const first: Script = { ledger: { settle: ({ outcome }) => Effect.succeed({ _tag: "Settled", outcome, late: true }) } }
    assert.deepStrictEqual((yield* charged(first)).asked.slice(-2), steps)
    assert.deepStrictEqual((yield* charged({ ...first, watched: true })).asked.slice(-3), [steps[0], "(after-settle)", steps[1]])
  }))
})

describe("an object", () => {
  it.effect("that is another one than the row's puts the charge aside, and nothing is asked for it", () => Effect.gen(function*() {
    const other = payment({ amountMinor: 2000 })
    const words = "pi_1 differs from the row: amount is 20.00 usd, not 19.99 usd"
    const { layer, lines, asked } = scripted({ gateway: { create: () => Effect.succeed(other) } })
    yield* Effect.gen(function*() {
      const error = yield* Effect.flip((yield* ChargePipeline).charge(request))
      assert.deepStrictEqual([error.reason._tag, "detail" in error.reason && error.reason.detail], ["ChargeQuarantined", words])
      assert.strictEqual(yield* counted(EngineMetrics.quarantined), 1)
    }).pipe(Effect.provide(layer))
    assert.deepStrictEqual([asked.slice(2), lines], [["create 1 1", `quarantine ${words}`, "find row"], [`Error quarantined: ${words}`]])
    assert.deepStrictEqual((yield* resumed(attached(), { gateway: shows(other) })).asked, ["look pi_1", `quarantine ${words}`, "find row"])
  }))

  it.effect("is refused for certain, or not made now", () => Effect.gen(function*() {
    const refusal = yield* charged({ gateway: { create: () => Effect.fail(invalid) } })
    assert.deepStrictEqual(refusal.all.slice(0, -2), ["Rejected resource_missing no such customer", claim, reserve, "create 1 1", "settle 1 null Rejected"])
    const later = yield* charged({ gateway: { create: () => Effect.fail(timeout) } })
    assert.deepStrictEqual(later.all, [`GatewayTimeout: ${timeout.message}`, claim, reserve, "create 1 1", "create 1 1", "create 1 1", `hand back 7000 ${timeout.message}`])
    const asksCustomer = chargeError(new AuthenticationRequired({ detail: "the bank asks" }))
    const odd = yield* charged({ gateway: { create: () => Effect.fail(asksCustomer) } })
    assert.deepStrictEqual([odd.end, odd.asked.at(-1)], [`AuthenticationRequired: ${asksCustomer.reason.message}`, `hand back 7000 ${asksCustomer.message}`], "no object waits for a customer")
    const unread = yield* resumed(attached(), { gateway: { retrieve: () => Effect.fail(invalid) } })
    assert.deepStrictEqual([unread.end.slice(0, 16), unread.asked[1]?.slice(0, 14)], ["UnexpectedAnswer", "hand back 7000"])
  }))

  it.effect("that lost against another one is given up, unless it was paid; one that nobody has won is left", () => Effect.gen(function*() {
    const losing = (winnerId: string | null, gateway: Script["gateway"] = {}) => charged({ ledger: { attach: () => Effect.succeed({ _tag: "Lost", winnerId }) }, gateway })
    const until = [claim, reserve, "create 1 1", "attach 1 pi_1 pm_1"]
    for (const same of [null, "pi_1"]) assert.deepStrictEqual((yield* losing(same)).all, [lost("attach"), ...until, "find row"])
    assert.deepStrictEqual((yield* losing("pi_2")).all, [lost("attach"), ...until, "cancel pi_1", "find row"])
    assert.deepStrictEqual((yield* losing("pi_2", { create: () => Effect.succeed(payment({ status: "draft" })) })).asked.slice(4), ["cancel pi_1", "find row"])
    const words = "pi_1 is succeeded, but another object is attached"
    assert.deepStrictEqual((yield* losing("pi_2", { create: () => Effect.succeed(paid) })).asked.slice(4), [`quarantine ${words}`, "find row"])
    // Of one key there is one charge, by whatever time its name is: whoever won has this very one.
    const oneCall = { isOneCall: (id: string) => id.startsWith("one:"), create: () => Effect.succeed({ ...paid, id: "one:2" }) }
    assert.deepStrictEqual((yield* losing("one:1", oneCall)).asked.slice(4), ["find row"])
    assert.deepStrictEqual((yield* losing("pi_2", oneCall)).asked.slice(4), ["quarantine one:2 is succeeded, but another object is attached", "find row"])
    const left = yield* losing("pi_2", { cancel: () => Effect.fail(timeout) })
    assert.deepStrictEqual([left.end, left.lines], [lost("attach"), [`Warn orphan pi_1 is left unconfirmed: ${timeout.message}`]])
  }))

  it.effect("that is a draft is prepared first", () => Effect.gen(function*() {
    const { asked } = yield* charged({ gateway: { create: () => Effect.succeed(payment({ status: "draft", amountMinor: 0 })), prepare: () => Effect.succeed(payment()) } })
    assert.deepStrictEqual(asked.slice(3), ["attach 1 pi_1 pm_1", "prepare pi_1", ...ended.slice(1)])
  }))

  it.effect("that was canceled is replaced by one of the next generation with the chosen method, five times at the most", () => Effect.gen(function*() {
    const canceled = shows(payment({ status: "canceled" }))
    const { all } = yield* resumed(attached({ paymentMethod: "pm_frozen", chosenMethod: "pm_chosen" }), { gateway: { ...canceled, create: () => Effect.succeed(payment({ id: "pi_2", generation: 2 })) } })
    assert.deepStrictEqual(all, [
      "Succeeded", "look pi_1", "renew 1 pi_1", reserve, "create 2 1", "attach 2 pi_2 pm_chosen", "confirm pi_2 1 pm_chosen", "settle 1 pi_1 Succeeded", "reserve by force 1 1999"
    ])
    const gone = yield* resumed(attached(), { gateway: canceled, ledger: { renew: () => Effect.succeed(false) } })
    assert.deepStrictEqual(gone.all, [lost("renew"), "look pi_1", "renew 1 pi_1", "find row"])
    assert.strictEqual((yield* resumed(attached({ generation: 4 }), { gateway: canceled })).asked[1], "renew 4 pi_1")
    const last = yield* resumed(attached({ generation: 5 }), { gateway: canceled })
    assert.deepStrictEqual(last.asked, ["look pi_1", "quarantine 5 payment objects were canceled at the processor", "find row"])
    const noMethod = yield* resumed(attached(), { gateway: { ...canceled, create: () => Effect.succeed(payment({ id: "pi_2" })) } })
    assert.deepStrictEqual(noMethod.asked.slice(4, 6), ["default method", "attach 2 pi_2 pm_default"])
  }))

  it.effect("says what became of the charge, or is asked for again", () => Effect.gen(function*() {
    const seen = (object: GatewayPayment, of: Partial<ClaimedCharge> = {}, more: Script["gateway"] = {}) =>
      Effect.map(resumed(attached(of), { gateway: { ...shows(object), ...more } }), ({ asked, end }) => [end, ...asked.slice(1).filter((step) => !step.startsWith("reserve"))])
    const given = ["release 1", "mark released 1"]
    const again = ["Succeeded", "confirm pi_1 1 pm_1", "settle 1 pi_1 Succeeded"]
    const refused = ["Declined card_declined no", "settle 1 pi_1 Declined next 3600000", ...given]
    assert.deepStrictEqual(yield* seen(paid), ["Succeeded", "settle 1 pi_1 Succeeded"])
    assert.deepStrictEqual(yield* seen(payment({ status: "processing" })), ["Processing", "settle 1 pi_1 Processing"])
    assert.deepStrictEqual(yield* seen(payment()), again)
    assert.deepStrictEqual(yield* seen(declinedAs("ch_new")), refused)
    assert.deepStrictEqual(yield* seen(declinedAs("ch_old"), { declinedChargeId: "ch_old" }), again)
    assert.deepStrictEqual(yield* seen(declinedAs(null)), again)
    // Where the charge is the object, its refusal is the answer of this attempt.
    assert.deepStrictEqual(yield* seen(declinedAs(null), {}, { isOneCall: () => true }), refused)
    assert.deepStrictEqual(yield* seen(payment(), {}, { isOneCall: () => true }), ["Succeeded", "extend", ...again.slice(1)])
    // What was accepted and failed later.
    assert.deepStrictEqual(yield* seen(payment(), { state: "processing" }), ["Declined card_declined declined", ...refused.slice(1)])
    assert.deepStrictEqual(yield* seen(declinedAs("ch_old"), { state: "processing", declinedChargeId: "ch_old" }), refused)
    const waits = payment({ status: "requires_action", paymentMethod: "pm_1" })
    const waiting = ["RequiresAction the customer must authenticate", "settle 1 pi_1 RequiresAction"]
    assert.deepStrictEqual(yield* seen(waits), waiting)
    assert.deepStrictEqual(yield* seen({ ...waits, paymentMethod: "pm_before" }), again)
    assert.deepStrictEqual(yield* seen({ ...waits, paymentMethod: "pm_before" }, { state: "processing" }), waiting)
    // Found in place of a new one, as an earlier holder has left it.
    assert.deepStrictEqual((yield* charged({ gateway: { create: () => Effect.succeed({ ...waits, paymentMethod: "pm_before" }) } })).asked.slice(3), ended)
  }))
})

describe("a confirm", () => {
  it.effect("comes after the lease was asked for again where half of it is gone, and not at all when it is lost", () => Effect.gen(function*() {
    /** Half of the lease passes while the object is made. */
    const slow = (ours: boolean, passes: string): Script => ({
      gateway: { create: () => Effect.as(TestClock.adjust(passes as "1 second"), payment()) }, ledger: { extend: () => Effect.succeed(ours) }
    })
    assert.deepStrictEqual((yield* charged(slow(true, "300 millis"))).asked, [claim, reserve, "create 1 1", ...ended])
    const late = yield* charged(slow(true, "700 millis"))
    assert.deepStrictEqual(late.asked.slice(late.asked.indexOf("attach 1 pi_1 pm_1")), ["attach 1 pi_1 pm_1", reserve, "extend", ...ended.slice(1)])
    const gone = yield* charged(slow(false, "700 millis"))
    assert.deepStrictEqual([gone.end, gone.asked.slice(-2)], [lost("confirm"), ["extend", "find row"]])
    // An answer that comes late, as that of a statement which waited for a lock, is no younger lease.
    const waited = yield* charged({ ledger: { claim: () => Effect.as(TestClock.adjust("700 millis"), { _tag: "Claimed" as const, charge: charge() }) } })
    assert.deepStrictEqual(waited.asked.slice(-4), [ended[0], reserve, "extend", ...ended.slice(1)].slice(-4))
    const watched = yield* charged({ ...slow(true, "700 millis"), watched: true })
    assert.deepStrictEqual(watched.asked.slice(-6), ["extend", "(before-confirm)", "confirm pi_1 1 pm_1", "(after-confirm)", "settle 1 pi_1 Succeeded", "(after-settle)"])
  }))

  it.effect("of a charge that was taken over holds the lease until it is its turn, and asks for it again where it is old", () => Effect.gen(function*() {
    const turns = (askedAtMs: number, waits: string): Effect.Effect<ReadonlyArray<string>> => {
      const { asked, layer } = scripted({ gateway: shows(payment()) })
      return Effect.gen(function*() {
        const pipeline = yield* ChargePipeline
        const fiber = yield* Effect.forkChild(pipeline.resume(attached(), { askedAtMs, turn: (work) => Effect.andThen(Effect.sleep(waits as "1 second"), work) }))
        yield* TestClock.adjust(waits as "1 second")
        yield* Fiber.join(fiber)
        return asked
      }).pipe(Effect.provide(layer), Effect.orDie)
    }
    yield* TestClock.setTime(10_000)
    const own = ["look pi_1", reserve, "confirm pi_1 1 pm_1", "settle 1 pi_1 Succeeded", "reserve by force 1 1999"]
    assert.deepStrictEqual(yield* turns(10_000, "300 millis"), own)
    const old = ["look pi_1", reserve, "extend", ...own.slice(2)]
    assert.deepStrictEqual(yield* turns(9_000, "300 millis"), old)
    assert.deepStrictEqual(yield* turns(10_600, "700 millis"), ["extend", "extend", ...old])
  }))

  it.effect("without an answer is followed by a look, and repeated where the object is unpaid", () => Effect.gen(function*() {
    const answers = inOrder<Effect.Effect<GatewayPayment, typeof timeout>>(Effect.fail(timeout), Effect.succeed(paid))
    const { asked } = yield* charged({ gateway: { confirm: answers }, watched: true })
    assert.deepStrictEqual(asked.slice(asked.indexOf("(after-attach)") + 1), [
      "(before-confirm)", "confirm pi_1 1 pm_1", "(after-confirm)", "look pi_1", "(before-confirm)", "confirm pi_1 1 pm_1", "(after-confirm)", "settle 1 pi_1 Succeeded", "(after-settle)"
    ])
    const silent = yield* charged({ gateway: { confirm: () => Effect.fail(timeout) } })
    assert.deepStrictEqual(silent.asked.at(-1), `hand back 7000 ${timeout.message}`)
  }))

  it.effect("under a key that was used for something else puts aside what has only its key", () => Effect.gen(function*() {
    const reused = chargeError(new KeyReused({ operation: "confirm", detail: "other parameters" }))
    const gateway: Script["gateway"] = { confirm: () => Effect.fail(reused) }
    const words = "the idempotency key was used with other parameters: another program may have charged this"
    const alone = yield* charged({ gateway: { ...gateway, isOneCall: () => true } })
    assert.deepStrictEqual(alone.asked.slice(-2), [`quarantine ${words}`, "find row"])
    const { asked } = yield* charged({ gateway })
    assert.deepStrictEqual([asked.filter((step) => step.startsWith("quarantine")), asked.at(-1)], [[], `hand back 7000 ${reused.message}`])
    const other = yield* charged({ gateway: { isOneCall: () => true, confirm: () => Effect.fail(timeout) } })
    assert.deepStrictEqual(other.asked.at(-1), `hand back 7000 ${timeout.message}`)
  }))

  it.effect("is refused for certain, or by a word that is none", () => Effect.gen(function*() {
    const denied = new PermissionDenied({ detail: "the key was taken away" })
    assert.deepStrictEqual((yield* charged({ gateway: { confirm: () => Effect.fail(chargeError(denied)) } })).end, "Rejected permission_denied the key was taken away")
    const odd = chargeError(new UnexpectedAnswer({ operation: "confirm", detail: "no JSON" }))
    assert.match((yield* charged({ gateway: { confirm: () => Effect.fail(odd) } })).asked.at(-1)!, /^hand back 7000/)
  }))
})

describe("a fact", () => {
  const settles = (...answers: readonly [Effect.Effect<object, typeof away>, ...Array<Effect.Effect<object, typeof away>>]): Script["ledger"] => {
    const next = inOrder(...answers)
    return { settle: () => next() as never }
  }
  it.effect("is recorded again while the store is away, and not for ever", () => Effect.gen(function*() {
    const recorded = yield* charged({ ledger: settles(Effect.fail(away), Effect.fail(away), Effect.succeed({ _tag: "Settled", outcome: succeeded() })) })
    assert.deepStrictEqual([recorded.end, recorded.asked.filter((step) => step.startsWith("settle")).length], ["Succeeded", 3])
    const never = yield* charged({ ledger: settles(Effect.fail(away)) })
    assert.deepStrictEqual([never.end, never.asked.filter((step) => step.startsWith("settle")).length, never.asked.at(-1)], [`LedgerUnavailable: ${away.message}`, 3, "find row"])
  }))

  it.effect("that another one has recorded differently stands, and what only we held is given back", () => Effect.gen(function*() {
    const row = { attempt: 1, outcome: declined } as never
    const other = (attempt: number, outcome: unknown) => charged({ ledger: { ...settles(Effect.succeed({ _tag: "Recorded", outcome: declined })), find: () => Effect.succeed({ attempt, outcome } as never) } })
    const kept = yield* charged({ ledger: { ...settles(Effect.succeed({ _tag: "Recorded", outcome: declined })), find: () => Effect.succeed(row) } })
    assert.deepStrictEqual([kept.end, kept.asked.slice(-3)], ["Declined card_declined no", ["find row", "release 1", "mark released 1"]])
    assert.deepStrictEqual((yield* other(2, declined)).asked.slice(-3), ["find row", "release 2", "mark released 2"])
    for (const [attempt, outcome] of [[1, null], [1, succeeded()], [1, new Processing({ chargeKey, alreadySettled: false, paymentIntentId: "pi_1" })]] as const) {
      assert.strictEqual((yield* other(attempt, outcome)).asked.at(-1), "find row")
    }
    // Not counted by us, and no room of ours.
    const late = scripted({ gateway: shows(paid), ledger: settles(Effect.succeed({ _tag: "Recorded", outcome: succeeded() })) })
    yield* Effect.gen(function*() {
      yield* (yield* ChargePipeline).resume(attached())
      assert.deepStrictEqual([yield* counted(EngineMetrics.charges.of("succeeded")), late.asked], [0, ["look pi_1", "settle 1 pi_1 Succeeded"]])
    }).pipe(Effect.provide(late.layer))
    const paidElsewhere = yield* charged({ ledger: settles(Effect.succeed({ _tag: "Recorded", outcome: succeeded("ch_other") })) })
    assert.deepStrictEqual([paidElsewhere.end, paidElsewhere.asked.at(-1)], ["Succeeded", "settle 1 pi_1 Succeeded"])
  }))

  it.effect("of another payment than the recorded one is found where nothing but a key stood before it", () => Effect.gen(function*() {
    const seen = (chargeId: string | null, more: Script["gateway"] = { isOneCall: () => true }, confirmed = paid) =>
      Effect.map(charged({ gateway: { ...more, confirm: () => Effect.succeed(confirmed) }, ledger: settles(Effect.succeed({ _tag: "Recorded", outcome: succeeded(chargeId) })) }), ({ asked }) => asked.find((step) => step.startsWith("quarantine")))
    assert.strictEqual(yield* seen("ch_other"), "quarantine paid twice: ch_other is recorded, and ch_1 was paid too; refund one of them")
    assert.deepStrictEqual([yield* seen("ch_1"), yield* seen(null), yield* seen("ch_other", {}), yield* seen("ch_other", { isOneCall: () => false })], [undefined, undefined, undefined, undefined])
    assert.isUndefined(yield* seen("ch_other", { isOneCall: () => true }, { ...paid, chargeId: null }))
    assert.isUndefined(yield* seen("ch_other", { isOneCall: () => true }, payment({ status: "processing" })))
    const refusedElsewhere = yield* charged({ gateway: { isOneCall: () => true }, ledger: settles(Effect.succeed({ _tag: "Recorded", outcome: declined })) })
    assert.deepStrictEqual([refusedElsewhere.end, refusedElsewhere.asked.at(-1)], ["Declined card_declined no", "find row"])
  }))

  it.effect("that comes with a lost lease is left to the holder", () => Effect.gen(function*() {
    const { asked, end } = yield* charged({ ledger: settles(Effect.succeed({ _tag: "LeaseLost" })), watched: true })
    assert.deepStrictEqual([end, asked.slice(-3)], [lost("settle"), ["settle 1 pi_1 Succeeded", "(after-settle)", "find row"]])
  }))
})

describe("a worker", () => {
  it.effect("that is stopped gives its charge back at once, and one that falls over leaves it to its lease", () => Effect.gen(function*() {
    const { asked, layer } = scripted({ gateway: { confirm: () => Effect.never } })
    yield* Effect.gen(function*() {
      const fiber = yield* Effect.forkChild((yield* ChargePipeline).charge(request), { startImmediately: true })
      yield* TestClock.adjust(1)
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(layer))
    assert.deepStrictEqual(asked.slice(-2), ["confirm pi_1 1 pm_1", "hand back 0 the worker was stopped"])
    const fallen = scripted({ gateway: { confirm: () => Effect.die(new Error("Bug: test")) } })
    const exit = yield* Effect.exit(Effect.flatMap(ChargePipeline, (pipeline) => pipeline.charge(request)).pipe(Effect.provide(fallen.layer)))
    assert.strictEqual(String(Exit.isFailure(exit) && Cause.squash(exit.cause)), "Error: Bug: test")
    assert.strictEqual(fallen.asked.at(-1), "confirm pi_1 1 pm_1")
  }))

  it.effect("claims nothing while charging is paused, and asks for no money in a pause that came since", () => Effect.gen(function*() {
    const pause = Context.get(yield* Layer.build(ChargePause.layerMemory), ChargePause)
    const act = { cause: "person", actor: "ops", reason: "an incident" } as const
    yield* pause.pause(act)
    const { asked, layer } = scripted({ pause, gateway: { create: () => Effect.as(pause.pause(act), payment()) as Effect.Effect<GatewayPayment> } })
    yield* Effect.gen(function*() {
      const fiber = yield* Effect.forkChild((yield* ChargePipeline).charge(request), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(asked, [])
      yield* pause.resume(act)
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual(asked, [claim, reserve, "create 1 1", "attach 1 pi_1 pm_1"])
      // The lease is held meanwhile, and asked for once more before the call.
      yield* TestClock.adjust("1 second")
      yield* pause.resume(act)
      yield* TestClock.adjust("100 millis")
      assert.strictEqual((yield* Fiber.join(fiber))._tag, "Succeeded")
      assert.deepStrictEqual([asked.includes("extend"), asked.slice(-2)], [true, ended.slice(1)])
    }).pipe(Effect.provide(layer))
  }))

  it.effect("goes on as well where the switch cannot say at once whether it is open", () => Effect.gen(function*() {
    const { isOpen: _, ...slow } = Context.get(yield* Layer.build(ChargePause.layerMemory), ChargePause)
    assert.deepStrictEqual((yield* charged({ pause: slow })).all, ["Succeeded", claim, reserve, "create 1 1", ...ended])
  }))

  it.effect("takes a request whose period has not begun for refused, and asks nobody", () => Effect.gen(function*() {
    const { all } = yield* charged({}, requestWith({ billingPeriod: "2099-01", allowFuture: false }))
    assert.deepStrictEqual([all.length, all[0]?.slice(0, 14)], [1, "InvalidRequest"])
    const foreign = yield* charged({}, requestWith({ senderKey: "theirs" }))
    assert.deepStrictEqual([foreign.end, foreign.lines], ["Succeeded", ["Info the sender's idempotency key differs from ours; ours is used"]])
  }))

  it.effect("is away from the processor for good, and says when it answered without having done anything", () => Effect.gen(function*() {
    const unavailable = chargeError(new GatewayUnavailable({ operation: "create", status: 500, replayed: true, detail: "stored" }))
    const { asked } = yield* charged({ gateway: { create: () => Effect.fail(unavailable) } })
    assert.deepStrictEqual(asked.slice(2), ["create 1 1", "find", "create 1 1 :r1", "find", "create 1 1 :r2", `hand back 7000 ${unavailable.message}`])
  }))
})
