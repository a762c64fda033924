/** What every `WebhookInbox` must do, driver or memory. Ids are of one test each, so that one store serves the suite. */
import { type WebhookEvent, WebhookInbox } from "@purser/core"
import { assert, layer as testLayer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { StoreClock } from "./StoreClock.ts"

const eventOf = (id: string, fields: Partial<WebhookEvent> = {}): WebhookEvent => ({
  id, type: "payment_intent.succeeded", createdMs: 1_785_600_000_000, account: null, subject: "payment", objectId: `pi_${id}`, ...fields
})
const holdMs = 60_000

/** Events of this test among all that are due. */
const takeOf = (prefix: string) =>
  Effect.flatMap(WebhookInbox, (inbox) =>
    Effect.map(inbox.take(100_000, holdMs), (due) => due.filter(({ event }) => event.id.startsWith(prefix))))

const recordOf = (id: string) =>
  Effect.flatMap(WebhookInbox, (inbox) => Effect.map(inbox.recent(100_000), (records) => records.find(({ event }) => event.id === id)))

/** Runs the suite against an inbox; the layer is built once. */
export const suite = <E>(name: string, layer: Layer.Layer<WebhookInbox | StoreClock, E>): void =>
  testLayer(layer, { timeout: 120_000 })(`WebhookInbox: ${name}`, (it) => {
    it.effect("keeps an event once, and counts how often it came", () =>
      Effect.gen(function*() {
        const inbox = yield* WebhookInbox
        const event = eventOf("evt_once", { account: "acct_1", subject: "dispute", objectId: "dp_1", type: "charge.dispute.created" })
        assert.isTrue(yield* inbox.receive(event))
        assert.isFalse(yield* inbox.receive(event))
        assert.isFalse(yield* inbox.receive({ ...event, type: "another.type" }))
        const due = yield* takeOf("evt_once")
        assert.deepStrictEqual(due, [{ event, tries: 0 }])
        assert.strictEqual((yield* recordOf("evt_once"))?.deliveries, 3)
      }))

    it.effect("of many deliveries at once one is the first", () =>
      Effect.gen(function*() {
        const inbox = yield* WebhookInbox
        const fresh = yield* Effect.all(Array.from({ length: 20 }, () => inbox.receive(eventOf("evt_many"))), { concurrency: "unbounded" })
        assert.strictEqual(fresh.filter((isFirst) => isFirst).length, 1)
        assert.strictEqual((yield* takeOf("evt_many")).length, 1)
      }))

    it.effect("gives an event to one taker, and again when that one has not finished it in time", () =>
      Effect.gen(function*() {
        const inbox = yield* WebhookInbox
        yield* inbox.receive(eventOf("evt_hold"))
        const takes = yield* Effect.all([takeOf("evt_hold"), takeOf("evt_hold"), takeOf("evt_hold")], { concurrency: 3 })
        assert.strictEqual(takes.flat().length, 1)
        yield* StoreClock.advance(holdMs)
        assert.deepStrictEqual((yield* takeOf("evt_hold")).map(({ tries }) => tries), [1])
      }))

    it.effect("a finished event is never due again, and its first verdict stands", () =>
      Effect.gen(function*() {
        const inbox = yield* WebhookInbox
        yield* inbox.receive(eventOf("evt_done"))
        yield* takeOf("evt_done")
        yield* inbox.finish("evt_done", "settled", "Succeeded")
        yield* inbox.finish("evt_done", "ignored", null)
        yield* inbox.postpone("evt_done", 0, "too late")
        assert.isFalse(yield* inbox.receive(eventOf("evt_done")))
        yield* StoreClock.advance(holdMs)
        assert.deepStrictEqual(yield* takeOf("evt_done"), [])
        const record = yield* recordOf("evt_done")
        assert.deepStrictEqual([record?.verdict, record?.detail, record?.tries], ["settled", "Succeeded", 1])
      }))

    it.effect("a postponed event comes back after its time, not before", () =>
      Effect.gen(function*() {
        const inbox = yield* WebhookInbox
        yield* inbox.receive(eventOf("evt_later"))
        yield* takeOf("evt_later")
        yield* inbox.postpone("evt_later", 10 * holdMs, "the processor is away")
        yield* StoreClock.advance(9 * holdMs)
        assert.deepStrictEqual(yield* takeOf("evt_later"), [])
        assert.strictEqual((yield* recordOf("evt_later"))?.detail, "the processor is away")
        yield* StoreClock.advance(holdMs)
        assert.deepStrictEqual((yield* takeOf("evt_later")).map(({ tries }) => tries), [1])
      }))

    it.effect("counts by verdict, and forgets only what is old and done", () =>
      Effect.gen(function*() {
        const inbox = yield* WebhookInbox
        const before = new Map((yield* inbox.totals).map(({ events, verdict }) => [verdict, events]))
        yield* Effect.forEach(["evt_old_a", "evt_old_b", "evt_old_open"], (id) => inbox.receive(eventOf(id)))
        yield* inbox.finish("evt_old_a", "noted", null)
        yield* inbox.finish("evt_old_b", "noted", null)
        const after = new Map((yield* inbox.totals).map(({ events, verdict }) => [verdict, events]))
        assert.strictEqual((after.get("noted") ?? 0) - (before.get("noted") ?? 0), 2)
        assert.strictEqual((after.get(null) ?? 0) - (before.get(null) ?? 0), 1)
        yield* StoreClock.advance(10 * holdMs)
        yield* inbox.receive(eventOf("evt_young"))
        yield* inbox.finish("evt_young", "noted", null)
        while ((yield* inbox.purge(9 * holdMs, 2)) > 0) { /* a bounded number at a time */ }
        assert.isUndefined(yield* recordOf("evt_old_a"))
        assert.isUndefined(yield* recordOf("evt_old_b"))
        assert.isDefined(yield* recordOf("evt_old_open"))
        assert.isDefined(yield* recordOf("evt_young"))
      }))
  })
