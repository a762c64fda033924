/** The scratch book over maps: the readable twin of the SQL driver. */
import { Effect, Schema } from "effect"
import { ChargeKey } from "../ChargeKey.ts"
import { Ledger } from "../Ledger.ts"
import type { AccountPayment } from "../ProcessorAccount.ts"
import type { ReconcileBook } from "../ReconcileBook.ts"

const isKey = Schema.is(ChargeKey)
const byId = (a: AccountPayment, b: AccountPayment) => a.id < b.id ? -1 : a.id > b.id ? 1 : 0

export const makeReconcileBookMemory = Effect.gen(function*() {
  const ledger = yield* Ledger
  const books = new Map<string, Map<string, AccountPayment>>()
  const bookOf = (bookId: string) => books.get(bookId) ?? new Map<string, AccountPayment>()

  const service: ReconcileBook["Service"] = {
    begin: (bookId) => Effect.sync(() => void books.set(bookId, new Map())),
    add: (bookId, objects) =>
      Effect.sync(() => {
        for (const object of objects) if (object.identity !== null) books.get(bookId)?.set(object.id, object)
      }),
    objects: (bookId, chargeKeys) =>
      Effect.sync(() => {
        const wanted = new Set(chargeKeys)
        return [...bookOf(bookId).values()].filter((object) => wanted.has(object.identity?.chargeKey ?? "")).sort(byId)
      }),
    withoutRow: Effect.fnUntraced(function*(bookId, afterId, limit) {
      const seen = [...bookOf(bookId).values()].filter(({ id }) => id > afterId).sort(byId).slice(0, limit)
      const objects = yield* Effect.filter(seen, ({ identity }) => {
        const key = identity?.chargeKey ?? ""
        return isKey(key) ? Effect.map(ledger.find(key), (record) => record === undefined) : Effect.succeed(true)
      })
      return { objects, next: seen.length === limit ? seen.at(-1)?.id : undefined }
    }),
    discard: (bookId) => Effect.sync(() => void books.delete(bookId))
  }
  return service
})
