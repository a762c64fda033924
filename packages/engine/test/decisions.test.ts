/** What decides without asking anybody: evidence, outcomes, differences and remedies, each held by what it says of every case. */
import { assert, describe, it } from "@effect/vitest"
import {
  type AccountPayment, AuthenticationRequired, CardDeclined, ChargeError, ChargeInProgress, type ChargeErrorReason, type ChargeRecord, ChargeRequest, type ClaimedCharge,
  GatewayTimeout, type GatewayPayment, GatewayUnavailable, InvalidRequest, KeyInUse, KeyReused, LeaseLost, LedgerError, LedgerUnavailable, PermissionDenied, RateLimited, Succeeded,
  UnexpectedAnswer
} from "@purser/core"
import { Schema } from "effect"
import { isDefinitive, isSpentKey } from "../src/internal/backoff.ts"
import { mismatchOf } from "../src/internal/evidence.ts"
import { isAttached, judge, termsProblem } from "../src/internal/judge.ts"
import { Fact, holdsOtherMethod, isDeclinedNow, outcomeOfPayment, outcomeOfRefusal } from "../src/internal/outcomes.ts"
import { identityProblem, isBusy, requestOf } from "../src/internal/remedy.ts"

const fields = { namespace: "zmq-billing", customerId: "acme", billingPeriod: "2026-07", amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_1" }
const requestWith = (more: object) => Schema.decodeUnknownSync(ChargeRequest)({ ...fields, ...more })
const request = requestWith({ item: "seat-1" })
const { chargeKey } = request

const charge = (more: Partial<ClaimedCharge> = {}): ClaimedCharge => ({
  lease: { chargeKey, worker: "w", epoch: 1 }, leaseLeftMs: 1000, request, state: "attached", resumed: false, generation: 0, attempt: 1, paymentIntentId: "pi_1",
  paymentMethod: "pm_1", chosenMethod: null, declinedChargeId: null, sinceFirstClaimMs: 0, firstClaimedAtMs: 0, ...more
})
const payment = (more: Partial<GatewayPayment> = {}): GatewayPayment => ({
  id: "pi_1", status: "unconfirmed", amountMinor: 1999, amountReceivedMinor: 0, currency: "usd", stripeCustomerId: "cus_1", chargeKey, generation: 0, chargeId: null, decline: null, ...more
})
const refused = { code: "card_declined", declineCode: "do_not_honor", detail: "no", adviceCode: "try_again_later", chargeId: "ch_9" }
const plain = (value: object | undefined) => value === undefined ? undefined : { ...value }

describe("whether an object is the row's", () => {
  it("is so when everything agrees, whatever the state", () => {
    for (const status of ["unconfirmed", "declined", "requires_action", "processing", "canceled"] as const) assert.isUndefined(mismatchOf(charge(), payment({ status })))
    assert.isUndefined(mismatchOf(charge(), payment({ status: "succeeded", amountReceivedMinor: 1999 })))
  })

  it("is told by each thing that differs, and by all of them", () => {
    const words = (more: Partial<GatewayPayment>) => mismatchOf(charge(), payment(more))
    assert.strictEqual(words({ amountMinor: 2000 }), "pi_1 differs from the row: amount is 20.00 usd, not 19.99 usd")
    // In the form of each side's own currency; of one that nobody knows, its minor units.
    assert.strictEqual(words({ amountMinor: 2000, currency: "jpy" }), "pi_1 differs from the row: amount is 2000 jpy, not 19.99 usd; currency is jpy, not usd")
    assert.strictEqual(words({ amountMinor: 2000, currency: "zzz" }), "pi_1 differs from the row: amount is 2000 minor units of zzz, not 19.99 usd; currency is zzz, not usd")
    assert.strictEqual(words({ currency: "eur" }), "pi_1 differs from the row: currency is eur, not usd")
    assert.strictEqual(words({ stripeCustomerId: null }), "pi_1 differs from the row: customer is null, not cus_1")
    assert.strictEqual(words({ chargeKey: null }), `pi_1 differs from the row: charge key is null, not ${chargeKey}`)
    assert.strictEqual(words({ status: "succeeded", amountReceivedMinor: 1 }), "pi_1 differs from the row: amount received is 0.01 usd, not 19.99 usd")
    assert.strictEqual(words({ id: "pi_2", currency: "eur", stripeCustomerId: "cus_2" }), "pi_2 differs from the row: currency is eur, not usd; customer is cus_2, not cus_1")
  })

  it("says nothing yet of a draft's amount", () => {
    assert.isUndefined(mismatchOf(charge(), payment({ status: "draft", amountMinor: 0 })))
    assert.strictEqual(mismatchOf(charge(), payment({ status: "draft", amountMinor: 0, currency: "eur" })), "pi_1 differs from the row: currency is eur, not usd")
  })
})

describe("what an object means for a charge", () => {
  const common = { chargeKey, alreadySettled: false, paymentIntentId: "pi_1" }

  it("is an outcome for each state that decides, and none for one that does not", () => {
    const of = (more: Partial<GatewayPayment>) => plain(outcomeOfPayment(charge(), payment(more)))
    assert.deepStrictEqual(of({ status: "succeeded", chargeId: "ch_1", amountReceivedMinor: 1999 }), { ...common, _tag: "Succeeded", chargeId: "ch_1", amountReceivedMinor: 1999 })
    assert.deepStrictEqual(of({ status: "processing" }), { ...common, _tag: "Processing" })
    assert.deepInclude(of({ status: "requires_action" }), { ...common, _tag: "RequiresAction", detail: "the customer must authenticate" })
    assert.deepStrictEqual(of({ status: "canceled" }), { ...common, _tag: "Canceled", detail: "canceled at the processor" })
    assert.deepStrictEqual(of({ status: "declined", decline: refused }), {
      ...common, _tag: "Declined", code: "card_declined", declineCode: "do_not_honor", detail: "no", adviceCode: "try_again_later", declinedChargeId: "ch_9"
    })
    assert.deepStrictEqual(of({ status: "declined" }), { ...common, _tag: "Declined", code: "card_declined", declineCode: null, detail: "declined", adviceCode: null, declinedChargeId: null })
    assert.deepStrictEqual(of({ status: "declined", decline: { ...refused, declineCode: "authentication_required" } }), {
      ...common, _tag: "RequiresAction", detail: "no", declinedChargeId: "ch_9"
    })
    for (const status of ["draft", "unconfirmed"] as const) assert.isUndefined(of({ status }))
  })

  it("is a fact about the attempt and the lease under which it was found", () => {
    const outcome = paidBy("pi_1")
    const { lease } = charge()
    assert.deepStrictEqual({ ...new Fact(charge({ attempt: 3 }), "pi_1", outcome, 500) }, { lease, attempt: 3, paymentIntentId: "pi_1", outcome, pollAfterMs: 500 })
  })

  it("is a decline of now only with another failed charge than the last one's", () => {
    const now = (more: Partial<GatewayPayment>, declinedChargeId: string | null) => isDeclinedNow(charge({ declinedChargeId }), payment({ status: "declined", decline: refused, ...more }))
    assert.isTrue(now({}, null))
    assert.isTrue(now({}, "ch_8"))
    assert.isFalse(now({}, "ch_9"))
    assert.isFalse(now({ decline: { ...refused, chargeId: null } }, "ch_8"))
    assert.isFalse(now({ decline: null }, "ch_8"))
    assert.isFalse(now({ status: "requires_action" }, null))
  })

  it("holds another method only where both are known", () => {
    const holds = (ours: string | null, theirs: string | null | undefined) => holdsOtherMethod(charge({ paymentMethod: ours }), payment(theirs === undefined ? {} : { paymentMethod: theirs }))
    assert.deepStrictEqual([holds("pm_1", "pm_2"), holds("pm_1", "pm_1"), holds("pm_1", null), holds("pm_1", undefined), holds(null, "pm_2")], [true, false, false, false, false])
  })

  it("is a refusal where it is certain, and nothing where it is not", () => {
    const of = (reason: ChargeErrorReason, id: string | null = "pi_1") => plain(outcomeOfRefusal(charge(), id, reason))
    const rejected = { chargeKey, alreadySettled: false, _tag: "Rejected" }
    assert.deepStrictEqual(of(new CardDeclined({ code: "card_declined", declineCode: "lost_card", adviceCode: "do_not_try_again", declinedChargeId: "ch_2", detail: "lost" })), {
      ...common, _tag: "Declined", code: "card_declined", declineCode: "lost_card", adviceCode: "do_not_try_again", declinedChargeId: "ch_2", detail: "lost"
    })
    assert.deepStrictEqual(of(new AuthenticationRequired({ declinedChargeId: "ch_2", detail: "3DS" })), { ...common, _tag: "RequiresAction", detail: "3DS", declinedChargeId: "ch_2" })
    assert.isUndefined(of(new AuthenticationRequired({ declinedChargeId: "ch_2", detail: "3DS" }), null))
    assert.deepStrictEqual(of(new InvalidRequest({ param: null, code: "resource_missing", detail: "gone" })), { ...rejected, code: "resource_missing", detail: "gone" })
    assert.deepStrictEqual(of(new InvalidRequest({ param: null, code: null, detail: "gone" })), { ...rejected, code: "invalid_request", detail: "gone" })
    assert.deepStrictEqual(of(new PermissionDenied({ detail: "key" })), { ...rejected, code: "permission_denied", detail: "key" })
    for (const reason of [new GatewayTimeout({ operation: "confirm", timeoutMs: 1 }), new KeyInUse({ operation: "confirm" }), new RateLimited({ retryAfterMs: null, limitReason: null })]) assert.isUndefined(of(reason))
  })
})

describe("a failed call", () => {
  const error = (reason: ChargeErrorReason) => new ChargeError({ reason, chargeKey, requestId: null })
  const down = (replayed: boolean) => error(new GatewayUnavailable({ operation: "confirm", status: 500, replayed, detail: "" }))

  it("is certain only when no money moved and asking again would be refused again", () => {
    const certain = [new InvalidRequest({ param: null, code: null, detail: "" }), new PermissionDenied({ detail: "" }), new CardDeclined({ code: "c", declineCode: null, detail: "" })].map(error)
    const open = [new RateLimited({ retryAfterMs: null, limitReason: null }), new GatewayTimeout({ operation: "x", timeoutMs: 1 }), new KeyInUse({ operation: "x" }), new UnexpectedAnswer({ operation: "x", detail: "" }), new KeyReused({ operation: "x", detail: "" })].map(error)
    assert.deepStrictEqual([...certain, ...open, down(true), down(false)].map(isDefinitive), [true, true, true, ...Array.from({ length: 7 }, () => false)])
  })

  it("has spent its key when a 5xx is stored under it, or it belongs to other parameters", () => {
    assert.deepStrictEqual([down(true), down(false), error(new KeyReused({ operation: "x", detail: "" })), error(new KeyInUse({ operation: "x" }))].map(isSpentKey), [true, false, true, false])
  })

  it("is nothing to worry about when somebody else holds the charge", () => {
    const ledger = (reason: LedgerError["reason"]) => new LedgerError({ reason, chargeKey })
    assert.deepStrictEqual(
      [ledger(new LeaseLost({ operation: "x" })), ledger(new ChargeInProgress({ leaseLeftMs: 1 })), ledger(new LedgerUnavailable({ operation: "x", detail: "" })), down(true)].map(isBusy),
      [true, true, false, false]
    )
  })
})

const record = (more: Partial<ChargeRecord> = {}): ChargeRecord => ({
  chargeKey, request, state: "attached", attempt: 1, generation: 0, paymentIntentId: "pi_1", outcome: null, quarantine: null, nextAttemptAtMs: null, chosenMethod: null, revises: null, ...more
})
const object = (more: Partial<AccountPayment> = {}): AccountPayment => ({
  id: "pi_1", status: "unconfirmed", amountMinor: 1999, amountReceivedMinor: 0, currency: "usd", stripeCustomerId: "cus_1", createdMs: 0, chargeId: null, paymentMethod: "pm_1", identity: null, ...more
})
const paidObject = (more: Partial<AccountPayment> = {}) => object({ status: "succeeded", amountReceivedMinor: 1999, ...more })
const paidBy = (paymentIntentId: string, chargeId: string | null = null) => new Succeeded({ chargeKey, alreadySettled: false, paymentIntentId, chargeId, amountReceivedMinor: 1999 })
const nowMs = 100_000_000
const orphanAgeMs = 3_600_000
const judged = (row: ChargeRecord, ...objects: ReadonlyArray<AccountPayment>) => judge(row, objects, { nowMs, orphanAgeMs }).map(({ detail, kind, objects, remedy }) => [kind, objects.map(({ id }) => id).join(), remedy, detail])

describe("what differs between a row and its objects", () => {
  it("is nothing when they agree", () => {
    assert.deepStrictEqual(judged(record({ state: "succeeded", outcome: paidBy("pi_1") }), paidObject()), [])
    assert.deepStrictEqual(judged(record({ state: "processing" }), object({ status: "processing" })), [])
    for (const status of ["requires_action", "unconfirmed", "declined", "draft"] as const) assert.deepStrictEqual(judged(record({ state: "requires_action" }), object({ status })), [])
    for (const state of ["attached", "declined", "rejected", "canceled"] as const) assert.deepStrictEqual(judged(record({ state }), object()), [])
    assert.deepStrictEqual(judged(record({ state: "processing" }), object({ status: "other" })), [])
    assert.deepStrictEqual(judged(record({ state: "processing" })), [])
    // Only a row that waits is told where its object has gone; the others' next step reads it anyway.
    for (const state of ["attached", "declined", "rejected", "canceled"] as const) {
      for (const status of ["processing", "canceled"] as const) assert.deepStrictEqual(judged(record({ state }), object({ status })), [])
    }
    assert.deepStrictEqual(judged(record({ state: "succeeded", paymentIntentId: null, outcome: paidBy("pi_1") }), paidObject()), [])
  })

  it("is a payment that the row does not know, and what may be done about it", () => {
    assert.deepStrictEqual(judged(record({ state: "declined" }), paidObject()), [["state_differs", "pi_1", "settle", "the row is declined, pi_1 is paid"]])
    assert.deepStrictEqual(judged(record({ state: "planned", paymentIntentId: null }), paidObject()), [["missing_here", "pi_1", "adopt", "the row is planned and names no object"]])
    assert.deepStrictEqual(judged(record(), paidObject({ id: "pi_2" })), [["not_attached", "pi_2", "none", "the row names pi_1"]])
    assert.deepStrictEqual(judged(record({ state: "succeeded", outcome: paidBy("pi_1") }), paidObject({ id: "pi_2" })), [["not_attached", "pi_2", "look", "the row was paid by pi_1"]])
    assert.deepStrictEqual(judged(record({ state: "succeeded" }), paidObject({ id: "pi_2" })), [["not_attached", "pi_2", "look", "the row was paid by another object"]])
  })

  it("is a payment of other terms, of which nothing is done", () => {
    assert.deepStrictEqual(judged(record(), paidObject({ amountMinor: 5 })), [["amount_differs", "pi_1", "none", "pi_1: amount is 0.05 usd, not 19.99 usd"]])
    assert.strictEqual(termsProblem(record(), paidObject({ amountReceivedMinor: 5, currency: "eur", stripeCustomerId: "cus_2" })), "currency is eur, not usd; customer is cus_2, not cus_1; amount received is 0.05 eur, not 19.99 usd")
    assert.isUndefined(termsProblem(record(), object({ amountReceivedMinor: 5 })))
  })

  it("is two payments, first of all; and the row's own one if it is late", () => {
    const both = [paidObject(), paidObject({ id: "pi_2" })]
    assert.deepStrictEqual(judged(record({ state: "succeeded", outcome: paidBy("pi_1") }), ...both), [["paid_twice", "pi_1,pi_2", "none", "2 payments bear this charge key"]])
    assert.deepStrictEqual(judged(record({ state: "succeeded", outcome: paidBy("pi_2") }), ...both).map(([kind]) => kind), ["paid_twice"])
    assert.deepStrictEqual(judged(record({ state: "attached" }), ...both), [
      ["paid_twice", "pi_1,pi_2", "none", "2 payments bear this charge key"], ["state_differs", "pi_1", "settle", "the row is attached, pi_1 is paid"]
    ])
    assert.deepStrictEqual(judged(record({ state: "attached", paymentIntentId: "pi_3" }), ...both).map(([kind]) => kind), ["paid_twice"])
  })

  it("is a paid row whose payment is not there, and a waiting row whose object has moved on", () => {
    assert.deepStrictEqual(judged(record({ state: "succeeded", outcome: paidBy("pi_1") })), [["missing_there", "", "look", "pi_1 is not among the objects listed"]])
    assert.deepStrictEqual(judge(record({ state: "succeeded" }), [], { nowMs, orphanAgeMs })[0]?.objects, [])
    assert.deepStrictEqual(judged(record({ state: "succeeded" })), [["missing_there", "", "look", "its object is not among the objects listed"]])
    assert.deepStrictEqual(judged(record({ state: "succeeded", outcome: paidBy("pi_1") }), object({ status: "canceled" })), [["state_differs", "pi_1", "none", "the row is succeeded, pi_1 is canceled"]])
    assert.deepStrictEqual(judged(record({ state: "processing" }), object({ status: "declined" })), [["state_differs", "pi_1", "settle", "the row is processing, pi_1 is declined"]])
    assert.deepStrictEqual(judged(record({ state: "requires_action" }), object({ status: "canceled" })), [["state_differs", "pi_1", "settle", "the row is requires_action, pi_1 is canceled"]])
  })

  it("is an unpaid object that no row names, when it is old enough and nobody is about to name it", () => {
    const orphan = (status: AccountPayment["status"], more: Partial<AccountPayment> = {}) => object({ id: "pi_2", status, ...more })
    for (const status of ["unconfirmed", "declined", "requires_action", "draft"] as const) {
      assert.deepStrictEqual(judged(record(), orphan(status)), [["orphan", "pi_2", "cancel", `pi_2 is ${status}, and no row names it`]])
    }
    assert.deepStrictEqual(judged(record(), orphan("draft", { id: "in_2" })).map(([kind, , remedy]) => [kind, remedy]), [["orphan", "none"]])
    for (const status of ["canceled", "other"] as const) assert.deepStrictEqual(judged(record(), orphan(status)), [])
    assert.deepStrictEqual(judged(record(), orphan("processing")), [["not_attached", "pi_2", "none", "pi_2 is being paid, and the row does not name it"]])
    assert.deepStrictEqual(judged(record(), orphan("unconfirmed", { createdMs: nowMs - orphanAgeMs + 1 })), [])
    assert.strictEqual(judged(record(), orphan("unconfirmed", { createdMs: nowMs - orphanAgeMs })).length, 1)
    for (const state of ["planned", "claimed"] as const) {
      assert.deepStrictEqual(judged(record({ state, paymentIntentId: null }), orphan("unconfirmed")), [])
      assert.strictEqual(judged(record({ state, paymentIntentId: "pi_1" }), orphan("unconfirmed")).length, 1)
    }
    assert.strictEqual(judged(record({ state: "rejected", paymentIntentId: null }), orphan("unconfirmed")).length, 1)
  })

  it("knows a charge of the one-call gateway by the row's own name for it", () => {
    const row = (more: Partial<ChargeRecord> = {}) => record({ paymentIntentId: "charges:abc", ...more })
    assert.isTrue(isAttached(row(), paidObject({ id: "ch_1" })))
    assert.isFalse(isAttached(row(), paidObject({ id: "pi_1" })))
    assert.isFalse(isAttached(row(), paidObject({ id: "in_1" })))
    assert.isFalse(isAttached(record(), paidObject({ id: "ch_1" })))
    assert.isFalse(isAttached(record({ paymentIntentId: null }), paidObject({ id: "ch_1" })))
    assert.deepStrictEqual(judged(row({ state: "succeeded", outcome: paidBy("charges:abc", "ch_1") }), paidObject({ id: "ch_1" })), [])
    assert.deepStrictEqual(judged(row({ state: "succeeded", outcome: paidBy("charges:abc", "ch_1") }), paidObject({ id: "ch_2" })), [["not_attached", "ch_2", "look", "the row was paid by ch_1"]])
  })
})

describe("the request behind an object", () => {
  const identity = { chargeKey, namespace: "zmq-billing", customerId: "acme", billingPeriod: "2026-07", item: "seat-1", revision: 0, generation: 0 } as NonNullable<AccountPayment["identity"]>
  const whole = (more: object = {}, at: Partial<AccountPayment> = {}) => object({ identity: { ...identity, ...more }, ...at })

  it("is told by the whole identity, with its method or without", () => {
    const named = requestOf(whole(), "named")
    assert.deepInclude({ ...named } as object, { namespace: "zmq-billing", customerId: "acme", billingPeriod: "2026-07", item: "seat-1", amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_1", paymentMethod: "pm_1", allowFuture: true })
    assert.strictEqual(named?.chargeKey, chargeKey)
    assert.isUndefined(requestOf(whole(), "default")?.paymentMethod)
    const without = requestOf(whole({}, { paymentMethod: null }), "named")
    assert.deepStrictEqual([without?.chargeKey, without?.paymentMethod], [chargeKey, undefined])
    assert.isUndefined(identityProblem(whole()))
  })

  it("is told by nothing less, and not by another's key", () => {
    for (const [field, name] of [["customerId", "customer_id"], ["billingPeriod", "billing_period"], ["namespace", "namespace"], ["revision", "revision"]] as const) {
      assert.isUndefined(requestOf(whole({ [field]: null }), "named"), field)
      assert.strictEqual(identityProblem(whole({ [field]: null })), `its metadata do not tell ${name}`)
    }
    assert.strictEqual(identityProblem(whole({ customerId: "", namespace: null })), "its metadata do not tell customer_id, namespace")
    assert.strictEqual(identityProblem(object()), "its metadata do not tell customer_id, billing_period, namespace, revision")
    assert.isUndefined(requestOf(object(), "named"))
    for (const more of [{ customerId: "other" }, { item: null }, { revision: 1 }, { chargeKey: "0".repeat(32) }]) {
      assert.isUndefined(requestOf(whole(more), "named"))
      assert.strictEqual(identityProblem(whole(more)), "its charge_key is not that of the identity and terms in its metadata")
    }
    assert.isUndefined(requestOf(whole({}, { amountMinor: 0 }), "named"))
    assert.strictEqual(identityProblem(whole({}, { paymentMethod: "" })), "its charge_key is not that of the identity and terms in its metadata")
  })

  it("has the revision that its key has", () => {
    const { chargeKey: anew } = requestWith({ item: "seat-1", revision: 2 })
    assert.strictEqual(requestOf(whole({ revision: 2, chargeKey: anew }), "named")?.revision, 2)
    const { chargeKey: bare } = requestWith({})
    assert.strictEqual(requestOf(whole({ item: null, chargeKey: bare }), "named")?.chargeKey, bare)
  })
})
