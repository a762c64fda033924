/**
 * Whether the ledger has forgotten what the processor remembers, as after a restore from a backup: the newest objects that bear
 * our metadata, held against the rows. It reads alone, a bounded part of the account, and proves nothing about what is older.
 */
import { type AccountList, type AccountPayment, type AccountReader, type ChargeError, chargeAsPayment, ChargeKey, Ledger, type LedgerError, ProcessorAccount } from "@purser/core"
import { Clock, Effect, Schema } from "effect"

/** Where the objects of a gateway are listed. */
export type RestoreList = "payments" | "invoices" | "charges"

/** What was found. Times in milliseconds of the Unix epoch. */
export interface RestoreSigns {
  /** The ledger's newest event; null when it has none. */
  readonly newestEventMs: number | null
  /** Objects that bear a charge key and were looked at. */
  readonly ours: number
  /** Those that the ledger does not know, newest first: no row, or a row that nobody had begun although money was asked for. */
  readonly unknown: ReadonlyArray<AccountPayment>
}

const pagesMax = 3
const daysBack = 35
const isKey = Schema.is(ChargeKey)

/** The object is stored before money is asked for, so that a row without one can belong to none of these. */
const wasAskedFor = ({ status }: AccountPayment) =>
  status === "succeeded" || status === "processing" || status === "requires_action" || status === "declined"

/** Looks at the newest objects of some accounts. */
export const lookForRestore = Effect.fn("RestoreCheck.lookForRestore")(function*(
  list: RestoreList,
  accounts: ReadonlyArray<string | null>
): Effect.fn.Return<RestoreSigns, ChargeError | LedgerError, Ledger | ProcessorAccount> {
  const ledger = yield* Ledger
  const account = yield* ProcessorAccount
  const nowMs = yield* Clock.currentTimeMillis
  const range = { fromMs: nowMs - daysBack * 86_400_000, toMs: nowMs + 86_400_000 }
  const unknown: Array<AccountPayment> = []
  let ours = 0

  const look = Effect.fnUntraced(function*(object: AccountPayment) {
    const key = object.identity?.chargeKey
    if (key === undefined || !isKey(key) || object.status === "canceled") return
    ours += 1
    const row = yield* ledger.find(key)
    const isForgotten = row === undefined || (row.paymentIntentId === null && (row.state === "planned" || row.state === "claimed") && wasAskedFor(object))
    if (isForgotten) unknown.push(object)
  })
  const walk = Effect.fnUntraced(function*<A>(page: AccountList<A>, show: (item: A) => ReadonlyArray<AccountPayment>) {
    let after: string | undefined
    for (let pages = 0; pages < pagesMax; pages++) {
      const { items, next } = yield* page(range, after)
      yield* Effect.forEach(items.flatMap(show), look, { discard: true })
      if (next === undefined) return
      after = next
    }
  })
  const listOf = (reader: AccountReader) =>
    list === "charges"
      ? walk(reader.charges, (charge) => charge.paymentIntentId === null ? [chargeAsPayment(charge)] : [])
      : walk(reader[list], (payment) => [payment])

  yield* Effect.forEach(accounts.map(account.at), listOf, { discard: true })
  unknown.sort((a, b) => b.createdMs - a.createdMs)
  return { newestEventMs: (yield* ledger.newestEventMs) ?? null, ours, unknown }
})
