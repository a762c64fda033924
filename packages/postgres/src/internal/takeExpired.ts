/**
 * Takes over charges whose lease ran out. A page of such a charge may have come to nothing since it was turned: somebody claimed
 * the charge, or it was settled. So a statement may take fewer than it looked at, and is followed by another one, since who is given
 * fewer than it asked for believes that there are no more.
 */
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { decodeRows, TakenRow } from "./chargeRow.ts"
import { eventPageMax } from "./eventPages.ts"
import { retryRolledBack, type StoreFailure } from "./failures.ts"
import { double, integer, text } from "./params.ts"
import { takeExpired as statement } from "./takeOverSql.ts"
import { turnAll } from "./upkeep.ts"

const counts = { pages: Schema.Int, put_back: Schema.Int }
const Taken = Schema.Struct({ ...TakenRow.fields, ...counts })
const decode = decodeRows(Schema.Union([Taken, Schema.Struct({ charge_key: Schema.Null, ...counts })]))
const isTaken = (row: { readonly charge_key: string | null }): row is typeof Taken.Type => row.charge_key !== null

/** Up to `limit` of them, those that ran out first. */
export const takeExpired = Effect.fnUntraced(function*(
  sql: SqlClient.SqlClient,
  worker: string,
  limit: number,
  leaseMs: number
): Effect.fn.Return<ReadonlyArray<typeof TakenRow.Type>, StoreFailure> {
  yield* turnAll(sql)
  const taken: Array<typeof TakenRow.Type> = []
  for (;;) {
    const asked = Math.min(limit - taken.length, eventPageMax)
    const take = retryRolledBack(Effect.flatMap(sql.unsafe(statement, [text(worker), integer(asked), double(leaseMs)]), decode))
    // What was taken before is in our hands, and has to be told.
    const rows = yield* taken.length === 0 ? take : Effect.orElseSucceed(take, () => [])
    taken.push(...rows.filter(isTaken))
    const [first] = rows
    // Where all that was looked at was put back, others are at it.
    if (first === undefined || first.pages < asked || first.pages === first.put_back || taken.length >= limit) return taken
  }
})
