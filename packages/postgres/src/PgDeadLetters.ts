/**
 * Dead letters on PostgreSQL (or PGlite). A bounded queue stands before the table and one fiber writes what is in it with
 * one statement, so that a flood of bad messages costs the charges beside it nothing but that.
 */
import { type DeadLetter, DeadLetters, type KeptLetter, letterMaxBytes, lettersMax } from "@purser/core"
import { Effect, Layer, Metric, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { createHash } from "node:crypto"
import { decodeRows } from "./internal/chargeRow.ts"
import { detailOf, ledgerUnavailable, retryRolledBack } from "./internal/failures.ts"
import { keepSoon } from "./internal/keepSoon.ts"
import { bigints, integer, texts } from "./internal/params.ts"
import { PostgresMetrics } from "./PostgresMetrics.ts"

const waitingMax = 1000
const batchMax = 100

/** digests, transports, principals, reasons, details, sizes, bodies (hex), limit. A known letter counts; a new one is kept while there is room. */
const keep = `with t as materialized (select purser.now() as now),
room as (select greatest(0, $8::integer - (select count(*) from (select 1 from purser.dead_letters limit $8::integer) l)) as free),
i as (
  select decode(digest, 'hex') as digest, transport, principal, reason, detail, size_bytes, decode(body, 'hex') as body
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[])
    as i(digest, transport, principal, reason, detail, size_bytes, body)
),
g as (
  select digest, min(transport) as transport, min(principal) as principal, min(reason) as reason, min(detail) as detail,
    min(size_bytes) as size_bytes, (array_agg(body))[1] as body, count(*) as times
  from i group by digest
),
n as (
  select g.*, exists (select 1 from purser.dead_letters l where l.digest = g.digest) as known,
    row_number() over (order by exists (select 1 from purser.dead_letters l where l.digest = g.digest), g.digest) as place
  from g
)
insert into purser.dead_letters as l (digest, first_at, last_at, times, transport, principal, reason, detail, size_bytes, body)
select n.digest, t.now, t.now, n.times, n.transport, n.principal, n.reason, n.detail, n.size_bytes, n.body
from n cross join t cross join room
where n.known or n.place <= room.free
order by n.digest
on conflict (digest) do update set times = l.times + excluded.times, last_at = excluded.last_at`

/** limit */
const list = `select encode(digest, 'hex') as digest, (extract(epoch from first_at) * 1000)::float8 as first_at_ms,
  (extract(epoch from last_at) * 1000)::float8 as last_at_ms, times, transport, principal, reason, detail, size_bytes, encode(body, 'hex') as body
from purser.dead_letters order by last_at desc limit $1::integer`

/** digests */
const discard = `with d as (delete from purser.dead_letters where digest in (select decode(digest, 'hex') from unnest($1::text[]) as i(digest)) returning 1)
select count(*)::integer as letters from d`

const LetterRow = Schema.Struct({
  digest: Schema.String,
  first_at_ms: Schema.Finite,
  last_at_ms: Schema.Finite,
  times: Schema.BigInt,
  transport: Schema.String,
  principal: Schema.NullOr(Schema.String),
  reason: Schema.String,
  detail: Schema.String,
  size_bytes: Schema.BigInt,
  body: Schema.String
})
const letterOf = (row: typeof LetterRow.Type): KeptLetter => ({
  digest: row.digest,
  firstAtMs: row.first_at_ms,
  lastAtMs: row.last_at_ms,
  times: Number(row.times),
  transport: row.transport,
  principal: row.principal,
  reason: row.reason,
  detail: row.detail,
  sizeBytes: Number(row.size_bytes),
  body: Buffer.from(row.body, "hex")
})
const decodeLetters = decodeRows(LetterRow)
const decodeCount = decodeRows(Schema.Struct({ letters: Schema.Int }))

const hex = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex")
const digestOf = ({ body, transport }: DeadLetter) => createHash("sha256").update(transport).update("\0").update(body).digest("hex")

const make = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const write = (batch: ReadonlyArray<{ readonly letter: DeadLetter; readonly digest: string }>) => {
    const letters = batch.map(({ letter }) => letter)
    return retryRolledBack(sql.unsafe(keep, [
      texts(batch.map(({ digest }) => digest)),
      texts(letters.map(({ transport }) => transport)),
      texts(letters.map(({ principal }) => principal)),
      texts(letters.map(({ reason }) => reason)),
      texts(letters.map(({ detail }) => detail.slice(0, 2000))),
      bigints(letters.map(({ body }) => body.length)),
      texts(letters.map(({ body }) => hex(body.subarray(0, letterMaxBytes)))),
      integer(lettersMax)
    ])).pipe(
      Effect.catch((failure) =>
        Effect.andThen(
          Metric.update(PostgresMetrics.deadLettersDropped, batch.length),
          Effect.logError(`${batch.length} dead letters could not be kept`, detailOf(failure))
        ))
    )
  }
  const keepOne = yield* keepSoon({ waitingMax, batchMax, write, dropped: (count) => Metric.update(PostgresMetrics.deadLettersDropped, count) })

  return DeadLetters.of({
    bury: (letter) =>
      Effect.suspend(() => {
        const copy = { ...letter, body: letter.body.slice() }
        return keepOne({ letter: copy, digest: digestOf(copy) })
      }),
    list: (limit) =>
      Effect.flatMap(sql.unsafe(list, [integer(limit)]), decodeLetters).pipe(
        Effect.map((rows) => rows.map(letterOf)),
        Effect.mapError(ledgerUnavailable("list dead letters"))
      ),
    discard: (digests) =>
      Effect.flatMap(sql.unsafe(discard, [texts(digests.filter((digest) => /^[0-9a-f]{64}$/.test(digest)))]), decodeCount).pipe(
        Effect.map((rows) => rows[0]!.letters),
        Effect.mapError(ledgerUnavailable("discard dead letters"))
      )
  })
})

/** The store of dead letters on a database that is migrated. */
export const PgDeadLetters = {
  layer: Layer.effect(DeadLetters, make)
} as const
