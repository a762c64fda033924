import { PGlite } from "@electric-sql/pglite"
import { assert, it } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Deferred, Effect, Fiber } from "effect"
import { Reactivity } from "effect/reactivity"
import { Buffer } from "node:buffer"
import type { Duplex } from "node:stream"
import { adaptClient } from "../src/internal/adaptClient.ts"
import { loadSeed } from "../src/internal/pglite/seed.ts"
import { simpleQuery, startupPacket } from "../src/internal/pglite/frames.ts"
import { PgliteHub } from "../src/internal/pglite/PgliteHub.ts"

const openHub = Effect.gen(function*() {
  const seed = yield* loadSeed
  const db = yield* Effect.acquireRelease(
    Effect.promise(() => PGlite.create({ loadDataDir: new Blob([new Uint8Array(seed)], { type: "application/x-tar" }) })),
    (db) => Effect.promise(() => db.close())
  )
  const streams: Array<Duplex> = []
  const hub = yield* Effect.acquireRelease(Effect.sync(() => new PgliteHub(db)), (hub) => Effect.sync(() => hub.close()))
  const stream = () => {
    const opened = hub.stream()
    streams.push(opened)
    return opened
  }
  const client = (options: { readonly multiplex: boolean; readonly maxConnections: number }) =>
    Effect.flatMap(PgClient.make({ stream, ssl: false, username: "postgres", ...options }), (client) => adaptClient(client, "pglite"))
  return { hub, streams, client }
})

const prepared = (sql: PgClient.PgClient) => sql<{ n: number }>`select count(*)::int as n from pg_prepared_statements`

for (const multiplex of [false, true]) {
  const mode = multiplex ? "shared connections" : "exclusive connections"

  it.live(`${mode}: rolls back and forgets what a broken connection left in the session`, () =>
    Effect.gen(function*() {
      const { client, streams } = yield* openHub
      const sql = yield* client({ multiplex, maxConnections: 2 })
      yield* sql`create table item (id integer)`
      const broken = sql.withTransaction(Effect.gen(function*() {
        yield* sql`insert into item values (1)`
        yield* Effect.forEach(streams, (stream) =>
          Effect.callback<void>((resume) => void stream.once("close", () => resume(Effect.void)).destroy()))
        yield* sql`insert into item values (2)`
      }))
      assert.strictEqual((yield* Effect.flip(broken)).reason._tag, "ConnectionError")
      // The client's pool may lend the dead connection once more before it notices.
      const rows = sql`select id from item`.pipe(Effect.retry({ times: 1, while: (error) => error.isRetryable }))
      assert.deepStrictEqual(yield* rows, [])
      // Its own statement and the one before are all that is prepared now.
      assert.isAtMost((yield* prepared(sql))[0]!.n, 2)
    }).pipe(Effect.provide(Reactivity.layer)), 60_000)

  it.live(`${mode}: cancels a statement that waits for another connection's transaction`, () =>
    Effect.gen(function*() {
      const { client } = yield* openHub
      const holder = yield* client({ multiplex, maxConnections: 1 })
      const other = yield* client({ multiplex, maxConnections: 1 })
      yield* holder`create table item (id integer)`
      const holding = yield* Deferred.make<void>()
      const release = yield* Deferred.make<void>()
      const transaction = yield* Effect.forkChild(holder.withTransaction(Effect.gen(function*() {
        yield* holder`insert into item values (1)`
        yield* Deferred.succeed(holding, void 0)
        yield* Deferred.await(release)
      })))
      yield* Deferred.await(holding)
      const waiting = yield* Effect.forkChild(other`insert into item values (2)`)
      yield* Effect.sleep("20 millis")
      yield* Fiber.interrupt(waiting)
      yield* Deferred.succeed(release, void 0)
      yield* Fiber.join(transaction)
      yield* other`insert into item values (3)`
      const rows = yield* other<{ id: number }>`select id from item order by id`
      // A shared connection cannot be cancelled: its statement may still run. An exclusive one never runs it.
      assert.deepStrictEqual(rows.map(({ id }) => id).filter((id) => multiplex ? id !== 2 : true), [1, 3])
    }).pipe(Effect.provide(Reactivity.layer)), 60_000)

  it.live(`${mode}: fails statements at once when the database is closed`, () =>
    Effect.gen(function*() {
      const { client, hub } = yield* openHub
      const sql = yield* client({ multiplex, maxConnections: 2 })
      yield* sql`select 1`
      hub.close()
      assert.strictEqual((yield* Effect.flip(sql`select 1`)).reason._tag, "ConnectionError")
    }).pipe(Effect.provide(Reactivity.layer)), 60_000)
}

it.live("reads frames that arrive byte by byte, and greets while another connection is in a transaction", () =>
  Effect.gen(function*() {
    const { client, hub } = yield* openHub
    const sql = yield* client({ multiplex: false, maxConnections: 1 })
    yield* sql.withTransaction(Effect.gen(function*() {
      yield* sql`select 1`
      const stream = hub.stream()
      const received: Array<Buffer> = []
      const text = () => Buffer.concat(received).toString("latin1")
      stream.on("data", (chunk: Buffer) => received.push(chunk))
      for (const byte of startupPacket({ user: "postgres" })) stream.write(Buffer.from([byte]))
      yield* Effect.sleep("5 millis").pipe(Effect.repeat({ until: () => text().includes("Z\0\0\0\x05I") }))
      assert.include(text(), "server_version")
      for (const byte of simpleQuery("select 'by' || 'tes'")) stream.write(Buffer.from([byte]))
      yield* Effect.sleep("5 millis")
      assert.notInclude(text(), "bytes")
      yield* Effect.forkDetach(
        Effect.sleep("5 millis").pipe(Effect.repeat({ until: () => text().includes("bytes") }), Effect.ensuring(Effect.sync(() => stream.destroy())))
      )
    }))
    const stream = hub.stream()
    const answered = Effect.callback<string>((resume) => void stream.on("data", (chunk: Buffer) => resume(Effect.succeed(chunk.toString("latin1")))))
    stream.write(startupPacket({ user: "postgres" }))
    assert.include(yield* answered, "server_version")
  }).pipe(Effect.provide(Reactivity.layer)), 60_000)
