/** What every `DunningBook` must do, driver or memory, over the ledger of the same store. */
import { type ChargeKey, DunningBook, Ledger, Processing, RequiresAction } from "@purser/core"
import { assert, layer as testLayer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { chargeFor, type ChargeForOptions } from "./chargeFor.ts"
import { claimedAndAttached, common, declined, longMs, many, mustClaim, period, rejected, settle, succeeded } from "./internal/ledgerSteps.ts"
import { StoreClock } from "./StoreClock.ts"

const by = { actor: "ada", reason: "as agreed" }
const dayMs = 86_400_000

/** A charge that was declined just now. */
const decline = Effect.fnUntraced(function*(customer: string, options: ChargeForOptions = {}, nextAttemptAfterMs: number | null = null) {
  const ledger = yield* Ledger
  const request = chargeFor(customer, period, options)
  const charge = yield* claimedAndAttached(request, `pi_${customer}`)
  const outcome = declined(request.chargeKey, `pi_${customer}`)
  yield* ledger.settle({ lease: charge.lease, attempt: 1, paymentIntentId: `pi_${customer}`, outcome, nextAttemptAfterMs })
  return request
})
const reopen = (chargeKey: ChargeKey, paymentMethod?: string) =>
  Effect.flatMap(Ledger, (ledger) => ledger.reopen({ chargeKeys: [chargeKey], from: ["declined"], ...by, ...(paymentMethod === undefined ? {} : { paymentMethod }) }))
const open = Effect.fnUntraced(function*(chargeKey: ChargeKey) {
  const answer = yield* (yield* DunningBook).open(chargeKey, by)
  if (answer._tag !== "Opened") return yield* Effect.die(new Error(`expected Opened, got ${answer._tag}`))
  return answer.case
})
/** A case whose workflow runs and waits at a step. */
const running = Effect.fnUntraced(function*(chargeKey: ChargeKey, step = 1) {
  const book = yield* DunningBook
  const { caseId } = yield* open(chargeKey)
  yield* book.started(caseId)
  yield* book.look(caseId, step)
  return caseId
})
const isMoved = (caseId: string) =>
  Effect.flatMap(DunningBook, (book) => Effect.map(book.moved("", many), (moved) => moved.find((one) => one.caseId === caseId)?.step))

/** Runs the suite; the layer is built once. */
export const suite = <E>(name: string, layer: Layer.Layer<DunningBook | Ledger | StoreClock, E>): void =>
  testLayer(layer, { timeout: 120_000 })(`DunningBook: ${name}`, (it) => {
    it.effect("opens one case for a declined charge, however many ask", () =>
      Effect.gen(function*() {
        const book = yield* DunningBook
        const { chargeKey } = yield* decline("one-case", { stripeCustomerId: "cus_one" })
        const answers = yield* Effect.all(Array.from({ length: 8 }, () => book.open(chargeKey, by)), { concurrency: "unbounded" })
        assert.deepStrictEqual(answers.map(({ _tag }) => _tag).sort(), ["Opened", ...Array.from({ length: 7 }, () => "Present")])
        const [view, ...others] = yield* book.casesOf(chargeKey)
        assert.deepStrictEqual(others, [])
        assert.deepInclude(view!.case, {
          caseId: `${chargeKey}.1`, number: 1, state: "open", stripeCustomerId: "cus_one", openedAttempt: 1, openedBy: "ada", reason: "as agreed",
          goesOnAtMs: null, closedAtMs: null, closedBy: null, detail: null
        })
        assert.strictEqual(view!.record.chargeKey, chargeKey)
      }))

    it.effect("opens none for a charge that is not declined, and numbers the next one after the last", () =>
      Effect.gen(function*() {
        const book = yield* DunningBook
        const unknown = chargeFor("nobody", period)
        assert.deepStrictEqual(yield* book.open(unknown.chargeKey, by), { _tag: "NotDeclined", state: null })
        const planned = chargeFor("in-work", period)
        yield* mustClaim(planned)
        assert.deepStrictEqual(yield* book.open(planned.chargeKey, by), { _tag: "NotDeclined", state: "claimed" })
        const { chargeKey } = yield* decline("again")
        const { caseId } = yield* open(chargeKey)
        assert.isTrue(yield* book.close(caseId, "canceled", { actor: "bob", reason: "asked to" }))
        assert.isFalse(yield* book.close(caseId, "paid", by))
        assert.deepInclude((yield* book.casesOf(chargeKey))[0]!.case, { state: "canceled", closedBy: "bob", detail: "asked to" })
        assert.strictEqual((yield* open(chargeKey)).number, 2)
        assert.deepStrictEqual((yield* book.casesOf(chargeKey)).map((view) => view.case.number), [2, 1])
      }))

    it.effect("opens cases for new declines once each, and passes over old ones and those that are followed up", () =>
      Effect.gen(function*() {
        const book = yield* DunningBook
        const due = { maxAgeMs: 10 * dayMs, limit: many, ...by }
        const old = yield* decline("old")
        yield* StoreClock.advance(11 * dayMs)
        const [fresh, other] = [yield* decline("fresh"), yield* decline("other")]
        yield* open(other.chargeKey)
        const passes = yield* Effect.all([book.openDue(due), book.openDue(due)], { concurrency: 2 })
        assert.isAtLeast(passes[0].opened + passes[1].opened, 1)
        assert.deepStrictEqual(yield* book.openDue(due), { opened: 0, passed: 0 })
        const cases = yield* Effect.forEach([old, fresh, other], ({ chargeKey }) => Effect.map(book.casesOf(chargeKey), (found) => found.length))
        assert.deepStrictEqual(cases, [0, 1, 1])
        // A later decline of a charge whose case is open is that case's affair.
        yield* reopen(fresh.chargeKey)
        yield* settle(yield* mustClaim(fresh), declined(fresh.chargeKey, "pi_fresh"), "pi_fresh")
        assert.deepStrictEqual(yield* book.openDue(due), { opened: 0, passed: 1 })
        assert.deepInclude((yield* book.casesOf(fresh.chargeKey))[0]!, { dueInMs: null })
      }))

    it.effect("opens no case for a charge that is at work again, was never declined or was found paid", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const book = yield* DunningBook
        const due = { maxAgeMs: 10 * dayMs, limit: many, ...by }
        yield* book.openDue(due)
        const again = yield* decline("due-again")
        yield* reopen(again.chargeKey)
        const refused = chargeFor("due-refused", period)
        yield* settle(yield* mustClaim(refused), rejected(refused.chargeKey))
        const found = chargeFor("due-found", period)
        yield* settle(yield* mustClaim(found), declined(found.chargeKey, null))
        yield* ledger.adopt({ request: found, paymentIntentId: "pi_due_found", paymentMethod: null, worker: "reconcile" })
        yield* mustClaim(chargeFor("due-new", period))
        assert.deepStrictEqual(yield* book.openDue(due), { opened: 0, passed: 0 })
      }))

    it.effect("opens no case for a charge that was put aside", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const book = yield* DunningBook
        const due = { maxAgeMs: 10 * dayMs, limit: many, ...by }
        yield* book.openDue(due)
        const { chargeKey } = yield* decline("due-aside")
        yield* ledger.quarantine({ chargeKey, worker: "w1", epoch: 1 }, "looked at")
        assert.deepStrictEqual(yield* book.open(chargeKey, by), { _tag: "NotDeclined", state: "declined" })
        assert.deepStrictEqual(yield* book.openDue(due), { opened: 0, passed: 1 })
      }))

    it.effect("hands each case to a workflow, and knows which ones run", () =>
      Effect.gen(function*() {
        const book = yield* DunningBook
        const keys = yield* Effect.forEach(["run-a", "run-b"], (customer) => Effect.map(decline(customer), ({ chargeKey }) => chargeKey))
        const [a, b] = yield* Effect.forEach(keys, (key) => Effect.map(open(key), ({ caseId }) => caseId))
        assert.includeMembers([...yield* book.toStart(many)], [a!, b!])
        yield* book.started(a!)
        assert.notInclude(yield* book.toStart(many), a)
        assert.include(yield* book.running("", many), a)
        assert.notInclude(yield* book.running(a!, many), a)
        assert.notInclude(yield* book.running("", many), b)
        yield* book.finished(a!)
        // Told once more by a runner that was slow.
        yield* book.started(a!)
        assert.notInclude(yield* book.running("", many), a)
        assert.notInclude(yield* book.toStart(many), a)
      }))

    it.effect("tells when the next attempt is due and how long the charge has stood, and when the case goes on", () =>
      Effect.gen(function*() {
        const book = yield* DunningBook
        const { chargeKey } = yield* decline("figures", {}, dayMs)
        const { caseId } = yield* open(chargeKey)
        yield* StoreClock.advance(longMs)
        const view = (yield* book.look(caseId, 1))!
        assert.approximately(view.dueInMs!, dayMs - longMs, 60_000)
        assert.approximately(view.settledForMs, longMs, 60_000)
        yield* book.waits(caseId, 1, dayMs)
        const { goesOnAtMs, openedAtMs } = (yield* book.casesOf(chargeKey))[0]!.case
        assert.approximately(goesOnAtMs! - openedAtMs, longMs + dayMs, 60_000)
        // A step that is over says nothing more.
        yield* book.look(caseId, 2)
        yield* book.waits(caseId, 1, 99 * dayMs)
        assert.strictEqual((yield* book.casesOf(chargeKey))[0]!.case.goesOnAtMs, goesOnAtMs)
        assert.isUndefined(yield* book.look("nothing", 1))
      }))

    it.effect("tells of a charge that is at work again, or whose object is read, that it has not stood for any time", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const stood = (chargeKey: ChargeKey) =>
          Effect.flatMap(DunningBook, (book) => Effect.map(book.casesOf(chargeKey), ([view]) => Math.round(view!.settledForMs / longMs)))
        const request = yield* decline("stands")
        const { chargeKey } = request
        yield* open(chargeKey)
        yield* StoreClock.advance(longMs)
        assert.strictEqual(yield* stood(chargeKey), 1)
        yield* reopen(chargeKey)
        yield* StoreClock.advance(longMs)
        assert.strictEqual(yield* stood(chargeKey), 0, "asked for again")
        const waits = new RequiresAction({ ...common(chargeKey), paymentIntentId: "pi_stands", detail: "3-D Secure" })
        yield* settle(yield* mustClaim(request), waits, "pi_stands")
        yield* StoreClock.advance(longMs)
        assert.strictEqual(yield* stood(chargeKey), 1)
        const taken = yield* ledger.takeWaiting(chargeKey, "webhooks")
        yield* StoreClock.advance(longMs)
        assert.strictEqual(yield* stood(chargeKey), 0, "its object is read")
        yield* settle(taken!, declined(chargeKey, "pi_stands"), "pi_stands")
        yield* reopen(chargeKey)
        yield* settle(yield* mustClaim(request), new Processing({ ...common(chargeKey), paymentIntentId: "pi_stands" }), "pi_stands", longMs)
        yield* StoreClock.advance(longMs)
        assert.strictEqual(yield* stood(chargeKey), 0, "its bank decides")

        const other = chargeFor("stands-found", period)
        yield* settle(yield* mustClaim(other), declined(other.chargeKey, null))
        yield* open(other.chargeKey)
        yield* ledger.adopt({ request: other, paymentIntentId: "pi_stands_found", paymentMethod: null, worker: "reconcile" })
        yield* StoreClock.advance(longMs)
        assert.strictEqual(yield* stood(other.chargeKey), 0, "paid at the processor")
      }))

    it.effect("names a running case once something has changed that it has not seen, and not while the charge is in work", () =>
      Effect.gen(function*() {
        const book = yield* DunningBook
        const request = yield* decline("moves")
        const caseId = yield* running(request.chargeKey)
        assert.isUndefined(yield* isMoved(caseId))
        yield* reopen(request.chargeKey)
        assert.isUndefined(yield* isMoved(caseId))
        yield* settle(yield* mustClaim(request), succeeded(request.chargeKey, "pi_moves"), "pi_moves")
        assert.strictEqual(yield* isMoved(caseId), 1)
        assert.isFalse((yield* book.moved(caseId, many)).some((one) => one.caseId <= caseId))
        assert.strictEqual((yield* book.look(caseId, 2))?.record.state, "succeeded")
        assert.isUndefined(yield* isMoved(caseId))
        yield* book.close(caseId, "canceled", by)
        assert.strictEqual(yield* isMoved(caseId), 2)
        yield* book.finished(caseId)
        assert.isUndefined(yield* isMoved(caseId))
      }))

    it.effect("offers a method to all open cases of a Stripe customer; the default one only to charges that name none", () =>
      Effect.gen(function*() {
        const book = yield* DunningBook
        const named = yield* decline("offer-named", { stripeCustomerId: "cus_offer" })
        const free = yield* decline("offer-free", { stripeCustomerId: "cus_offer", paymentMethod: null })
        const stranger = yield* decline("offer-else", { stripeCustomerId: "cus_else", paymentMethod: null })
        const [a, b, c] = yield* Effect.forEach([named, free, stranger], ({ chargeKey }) => running(chargeKey))
        assert.deepStrictEqual((yield* book.openOf("cus_offer")).map((view) => view.record.chargeKey), [free.chargeKey])
        // What was tried last is the default method that was read then.
        const read = (paymentMethod: string, ...namespaces: ReadonlyArray<string>) => book.offer("cus_offer", null, by, { paymentMethod, namespaces })
        assert.deepStrictEqual([yield* read("pm_card_visa", free.namespace), yield* read("pm_other", "elsewhere"), yield* read("pm_other")], [0, 0, 0])
        assert.isUndefined(yield* isMoved(b!))
        assert.strictEqual(yield* read("pm_other", "elsewhere", free.namespace), 1)
        assert.deepStrictEqual(yield* Effect.forEach([a!, b!, c!], isMoved), [undefined, 1, undefined])
        assert.strictEqual(yield* book.offer("cus_offer", "pm_new", by), 2)
        assert.deepStrictEqual((yield* book.look(a!, 2))?.offered, { paymentMethod: "pm_new", attempt: 1, ...by })
        assert.isNull((yield* book.look(c!, 2))?.offered ?? null)
        yield* book.close(a!, "paid", by)
        assert.strictEqual(yield* book.offer("cus_offer", "pm_newer", by), 1)
      }))

    it.effect("names a case that waits for room once room is made or a method is offered, also where that came before its wait", () =>
      Effect.gen(function*() {
        const book = yield* DunningBook
        const request = yield* decline("room", { stripeCustomerId: "cus_room" })
        const caseId = yield* running(request.chargeKey)
        const goesOn = Effect.map(book.casesOf(request.chargeKey), ([view]) => view?.case.goesOnAtMs)
        yield* book.waits(caseId, 1, dayMs)
        // It waits for its day and not for room.
        assert.strictEqual(yield* book.roomMade(request), 0)
        yield* book.waits(caseId, 1, dayMs, "the cap is full")
        assert.strictEqual(yield* book.roomMade({ ...request, namespace: "another" }), 0)
        assert.isUndefined(yield* isMoved(caseId))
        assert.strictEqual(yield* book.roomMade(request), 1)
        assert.deepStrictEqual([yield* isMoved(caseId), yield* goesOn], [1, null])
        yield* book.look(caseId, 2)
        assert.isUndefined(yield* isMoved(caseId))
        // Offered after the look, and before the step says that it waits: the offer is not slept over.
        assert.strictEqual(yield* book.offer("cus_room", "pm_new", by), 1)
        yield* book.waits(caseId, 2, dayMs, "the cap is full")
        assert.deepStrictEqual([yield* isMoved(caseId), yield* goesOn], [2, null])
        // One that was looked at, and found no room, wakes nobody.
        yield* book.look(caseId, 3)
        yield* book.waits(caseId, 3, dayMs, "the cap is full")
        assert.isUndefined(yield* isMoved(caseId))
        yield* book.offer("cus_room", "pm_new", by)
        assert.strictEqual(yield* isMoved(caseId), 3)
        yield* book.close(caseId, "canceled", by)
        assert.strictEqual(yield* book.roomMade(request), 0)
      }))

    it.effect("has followed up the last decline of a case that ended", () =>
      Effect.gen(function*() {
        const book = yield* DunningBook
        const request = yield* decline("ended")
        const { caseId } = yield* open(request.chargeKey)
        yield* reopen(request.chargeKey)
        yield* settle(yield* mustClaim(request), declined(request.chargeKey, "pi_ended"), "pi_ended")
        yield* book.close(caseId, "canceled", by)
        yield* book.openDue({ maxAgeMs: dayMs, limit: many, ...by })
        assert.strictEqual((yield* book.casesOf(request.chargeKey)).length, 1)
      }))

    it.effect("makes a charge due for another case when the new method was refused too", () =>
      Effect.gen(function*() {
        const book = yield* DunningBook
        const request = yield* decline("renewed")
        const caseId = yield* running(request.chargeKey)
        const due = { maxAgeMs: dayMs, limit: many, ...by }
        yield* book.openDue(due)
        yield* reopen(request.chargeKey, "pm_new")
        yield* settle(yield* mustClaim(request), declined(request.chargeKey, "pi_renewed"), "pi_renewed")
        yield* book.openDue(due)
        yield* book.close(caseId, "new_method", by)
        yield* book.openDue(due)
        assert.deepStrictEqual((yield* book.casesOf(request.chargeKey)).map((view) => [view.case.number, view.case.state, view.case.openedAttempt]), [
          [2, "open", 2], [1, "new_method", 1]
        ])
      }))

    it.effect("notes what an open case waits for, and counts what is still asked for under a cap", () =>
      Effect.gen(function*() {
        const book = yield* DunningBook
        const request = yield* decline("noted")
        const detail = Effect.map(book.casesOf(request.chargeKey), ([view]) => view?.case.detail)
        const before = yield* book.followed(request)
        assert.isAtLeast(before.unseen, 1)
        const { caseId } = yield* open(request.chargeKey)
        yield* book.look(caseId, 1)
        yield* book.waits(caseId, 1, 1000, "the cap is closed")
        assert.strictEqual(yield* detail, "the cap is closed")
        // The one moved from those that nobody has looked at to those that are asked for.
        assert.deepStrictEqual(yield* book.followed(request), { asked: before.asked + 1, unseen: before.unseen - 1 })
        assert.deepStrictEqual(yield* book.followed({ ...request, namespace: "another" }), { asked: 0, unseen: 0 })
        yield* book.waits(caseId, 1, 1000)
        assert.isNull(yield* detail)
        yield* book.close(caseId, "left", by)
        yield* book.waits(caseId, 1, 1000, "late")
        assert.strictEqual(yield* detail, by.reason)
      }))

    it.effect("what was read stays as it was read", () =>
      Effect.gen(function*() {
        const book = yield* DunningBook
        const { chargeKey, stripeCustomerId } = yield* decline("read", { stripeCustomerId: "cus_read", paymentMethod: null })
        const caseId = yield* running(chargeKey)
        const listed = (yield* book.list({ onlyOpen: true, limit: many })).filter((view) => view.case.caseId === caseId)
        const views = [(yield* book.look(caseId, 1))!, (yield* book.openOf(stripeCustomerId))[0]!, (yield* book.casesOf(chargeKey))[0]!, ...listed]
        const stands = () => views.map((view) => [view.case.state, view.record.state, view.record.attempt, view.offered])
        assert.deepStrictEqual(stands(), Array.from({ length: 4 }, () => ["open", "declined", 1, null]))
        yield* book.offer(stripeCustomerId, "pm_card_visa", by)
        yield* reopen(chargeKey)
        yield* book.close(caseId, "canceled", by)
        assert.deepStrictEqual(stands(), Array.from({ length: 4 }, () => ["open", "declined", 1, null]))
        assert.strictEqual((yield* book.casesOf(chargeKey))[0]!.record.attempt, 2)
      }))

    it.effect("lists cases, the newest first", () =>
      Effect.gen(function*() {
        const book = yield* DunningBook
        const ids = yield* Effect.forEach(["list-a", "list-b", "list-c"], (customer) =>
          Effect.gen(function*() {
            yield* StoreClock.advance(1000)
            return (yield* open((yield* decline(customer)).chargeKey)).caseId
          }))
        yield* book.close(ids[1]!, "left", by)
        const listed = (onlyOpen: boolean, limit: number) =>
          Effect.map(book.list({ onlyOpen, limit }), (views) => views.map((view) => view.case.caseId))
        assert.deepStrictEqual(yield* listed(false, 3), [ids[2], ids[1], ids[0]])
        assert.deepStrictEqual(yield* listed(true, 2), [ids[2], ids[0]])
      }))

    it.effect("lets one of many move a charge that was refused at an attempt", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const { chargeKey } = yield* decline("one-moves")
        const ask = (attempt: number) => ledger.reopen({ chargeKeys: [chargeKey], from: ["declined"], attempt, ...by })
        assert.strictEqual(yield* ask(2), 0)
        const moved = yield* Effect.all(Array.from({ length: 6 }, () => ask(1)), { concurrency: "unbounded" })
        assert.strictEqual(moved.reduce((sum, count) => sum + count, 0), 1)
        assert.strictEqual((yield* ledger.find(chargeKey))?.attempt, 2)
      }))
  })
