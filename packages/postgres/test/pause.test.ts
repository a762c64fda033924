/** The switch on both databases: what one process throws, another sees, and nobody can take the trail away. */
import { ChargePause } from "@purser/core"
import { SpanJournal } from "@purser/testkit"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Fiber, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { PgChargePause } from "../src/PgChargePause.ts"
import * as TestDatabase from "../src/TestDatabase.ts"

const person = { cause: "person", actor: "ops", reason: "an incident" } as const
const outage = { cause: "outage", actor: "worker-1", reason: "no answers" } as const

/** A switch as another process on the same database has it. */
const another = (poll = "10 millis") =>
  Effect.map(
    Layer.build(Layer.fresh(PgChargePause.layer).pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ PURSER_PAUSE_POLL: poll }))))),
    (services) => Context.get(services, ChargePause)
  )

const EventRow = Schema.Array(Schema.Struct({ act: Schema.String, cause: Schema.String, actor: Schema.String, reason: Schema.String }))
const trail = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.flatMap(sql`select act, cause, actor, reason from purser.pause_events order by position`, Schema.decodeUnknownEffect(EventRow)))

for (const [name, database] of TestDatabase.layers) {
  describe(`the switch on ${name}`, () => {
    it.live("is thrown here and seen there, and the other way round", () =>
      Effect.gen(function*() {
        const here = yield* another()
        const there = yield* another()
        yield* there.whenOpen
        assert.isTrue(yield* here.pause(person))
        yield* there.whenPaused
        assert.deepStrictEqual((yield* there.view).map(({ actor, cause, reason }) => ({ actor, cause, reason })), [person])
        assert.closeTo((yield* there.inForce)[0]!.sinceMs, Date.now(), 60_000)
        const waiting = yield* Effect.forkChild(here.whenOpen)
        assert.isTrue(yield* there.resume({ ...person, actor: "ops 2" }))
        yield* Fiber.join(waiting)
        assert.deepStrictEqual(yield* here.view, [])
      }).pipe(Effect.scoped, Effect.provide(database)))

    it.live("is looked at without a trace of each look, and thrown with one", () =>
      Effect.gen(function*() {
        const journal = yield* SpanJournal
        const here = yield* another()
        yield* here.whenOpen
        const statements = Effect.map(journal.all, (spans) => spans.filter(({ attributes }) => attributes.has("db.query.text")).length)
        const before = yield* statements
        const there = yield* another()
        yield* there.pause(person)
        yield* here.whenPaused
        // The act itself, and what it reads back.
        assert.strictEqual((yield* statements) - before, 2)
      }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(database, SpanJournal.layer))))

    it.live("keeps a person's pause and an outage's apart", () =>
      Effect.gen(function*() {
        const here = yield* another()
        const there = yield* another()
        yield* here.pause(person)
        yield* there.pause(outage)
        yield* here.whenOutage
        assert.isTrue(yield* there.resume(outage))
        assert.isFalse(yield* there.resume(outage))
        assert.deepStrictEqual((yield* here.inForce).map(({ cause }) => cause), ["person"])
        assert.isTrue(yield* here.resume(person))
      }).pipe(Effect.scoped, Effect.provide(database)))

    it.live("takes the first of two equal acts, and keeps who did what in a trail that stays", () =>
      Effect.gen(function*() {
        const here = yield* another()
        assert.isTrue(yield* here.pause(person))
        assert.isFalse(yield* here.pause({ ...person, actor: "late", reason: "me too" }))
        yield* here.resume({ ...person, actor: "boss", reason: "over" })
        assert.deepStrictEqual(yield* trail, [
          { act: "paused", ...person },
          { act: "resumed", cause: "person", actor: "boss", reason: "over" }
        ])
        const sql = yield* SqlClient.SqlClient
        for (const act of ["delete from purser.pause_events", "truncate purser.pause_events"]) {
          assert.match(String((yield* Effect.flip(sql.unsafe(act))).reason.cause), /append-only/)
        }
      }).pipe(Effect.scoped, Effect.provide(database)))

    it.live("lets nothing through that has never read it, and changes nobody's mind when it cannot be read", () =>
      Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        const known = yield* another()
        yield* known.whenOpen
        yield* sql.unsafe("alter table purser.pauses rename to elsewhere")
        const blind = yield* another()
        const error = yield* Effect.flip(blind.inForce)
        assert.strictEqual(error.reason._tag, "LedgerUnavailable")
        const waiting = yield* Effect.forkChild(blind.whenOpen)
        yield* known.whenOpen
        assert.isUndefined(waiting.pollUnsafe())
        yield* sql.unsafe("alter table purser.elsewhere rename to pauses")
        yield* Fiber.join(waiting)
      }).pipe(Effect.scoped, Effect.provide(database)))
  })
}
