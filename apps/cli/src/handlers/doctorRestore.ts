/** One check of `purser doctor`: whether the ledger knows the newest objects of ours at Stripe, which a restored backup does not. */
import { ProcessorAccount, SpendCap } from "@purser/core"
import { lookForRestore, type RestoreList } from "@purser/engine"
import { PgLedger, PgSpendCap } from "@purser/postgres"
import { gatewayNameConfig, StripeAccount } from "@purser/stripe"
import { Config, DateTime, Effect, Layer, Option } from "effect"

const lists = { payment_intents: "payments", invoices: "invoices", charges: "charges" } as const satisfies Record<string, RestoreList>
/** Each account costs up to three calls. */
const accountsMax = 20
const at = (ms: number) => DateTime.formatIso(DateTime.makeUnsafe(ms))

/** The level and the words. */
export const examineRestore = Effect.gen(function*() {
  const account = yield* ProcessorAccount
  const namespaces = new Set((yield* (yield* SpendCap).report()).map(({ namespace }) => namespace))
  const accounts = [...new Set([account.account, ...[...namespaces].map(account.accountOf)])].slice(0, accountsMax)
  const { newestEventMs, ours, unknown } = yield* lookForRestore(lists[yield* gatewayNameConfig], accounts)
  const point = Option.getOrUndefined(yield* Config.option(Config.Date("PURSER_RESTORE_POINT")))
  const newest = unknown[0]
  if (newest === undefined) return { level: "ok", text: `it knows the newest objects of ours at Stripe (${ours} were looked at)` } as const
  const event = newestEventMs === null ? "it has no event at all" : `its newest event is of ${at(newestEventMs)}`
  const isLater = newestEventMs === null || newest.createdMs > newestEventMs
  const found = `it does not know ${unknown.length} of ${ours} objects at Stripe that bear our metadata, the newest ${newest.id} of ${at(newest.createdMs)}; ${event}`
  if (point !== undefined) return { level: "warn", text: `${found}. PURSER_RESTORE_POINT is set: run purser reconcile for every period since ${point.toISOString()}` } as const
  const advice = "Charge nothing: set PURSER_RESTORE_POINT to a moment before the backup was made, and run purser reconcile for every period since"
  // Namespaces of which this ledger has no cap may be another ledger's.
  const isOurs = unknown.some(({ identity }) => identity?.namespace != null && namespaces.has(identity.namespace))
  return isOurs
    ? { level: "fail", text: `${found}. It ${isLater ? "was" : "may have been"} restored from a backup. ${advice}` } as const
    : { level: "warn", text: `${found}. Another ledger charges this account, or this one was restored from a backup. If it was: ${advice}` } as const
}).pipe(
  Effect.catchTag("ChargeError", (error) => Effect.succeed({ level: "warn", text: `whether it was restored from a backup cannot be seen: ${error.message}` } as const)),
  Effect.provide(Layer.mergeAll(PgLedger.layer, PgSpendCap.layer, StripeAccount.layerConfig))
)
