/**
 * Reconciliation in a world: the command runs now and then beside living workers, and once more when all has come to rest. A dry
 * run does nothing, a real one takes nothing from anybody, and what nobody is the owner of is found.
 */
import { type ChargeRequest, Ledger, RefundLedger, Sightings } from "@purser/core"
import { type Difference, Reconciler, type ReconcileOptions, type ReconcileReport } from "@purser/engine"
import { Context, Effect, Exit } from "effect"
import { isDeepStrictEqual } from "node:util"
import type { Beside } from "./Beside.ts"
import type { ReconcilePlan } from "./BesidePlan.ts"
import { startMs } from "./Kernel.ts"
import { type Engine, Office, type OfficeShared } from "./Office.ts"
import { listAt, postAt } from "./StripeDesk.ts"

const writes: ReadonlyArray<string> = ["claim", "attach", "settle", "extend", "handBack", "renew", "quarantine", "takeExpired", "takeWaiting", "adopt", "markReleased", "reopen", "note", "list", "unlist"]

/** A book whose writes are noted while a dry run is under way. */
const noted = <S extends object>(book: S, onWrite: (operation: string) => void): S =>
  Object.fromEntries(Object.entries(book).map(([name, member]) => [
    name,
    typeof member === "function" && writes.includes(name)
      ? (...args: ReadonlyArray<unknown>) => {
        onWrite(name)
        return member(...args)
      }
      : member
  ])) as S

interface Intent {
  readonly id: string
  readonly status: string
  readonly metadata: Readonly<Record<string, string>>
}

/** One run's report with its differences. */
interface Ran {
  readonly report: ReconcileReport
  readonly differences: ReadonlyArray<Difference>
}

/** The office that compares, its runs, and the strays that it has to find. */
export const makeReconciling = Effect.fnUntraced(function*(shared: OfficeShared, { runs, strays }: ReconcilePlan) {
  const { books, cap, kernel, ledger, mutant, requests, scenario, sim, tools, violations } = shared
  const { billingPeriod } = requests[0]!
  let dry = false
  const onWrite = (what: string) => {
    if (dry) violations.push(`a dry run of reconciliation did ${what}`)
  }
  const looks = new Map<string, number>()
  const engine = (built: Context.Context<Engine>) => {
    const seen = noted(Context.get(built, Ledger), onWrite)
    const watched = built.pipe(
      Context.add(Ledger, { ...seen, find: (chargeKey) => Effect.tap(seen.find(chargeKey), () => Effect.sync(() => looks.set(chargeKey, kernel.nowMs))) }),
      Context.add(Sightings, noted(Context.get(built, Sightings), onWrite))
    )
    return mutant?.reconciling?.(watched, tools) ?? watched
  }
  const office: Office<Reconciler> = new Office("reconcile", shared, { layer: Reconciler.layerNoDeps, engine })
  const rows = Effect.orDie(ledger.page(billingPeriod, "", 100))

  /** An object may be given up whose row came to name it after the last look at this row; no other that a row names. */
  const onCall = (method: string, path: string): Effect.Effect<void> =>
    method === "GET" ? Effect.void : Effect.gen(function*() {
      onWrite(`${method} ${path}`)
      const id = /^\/v1\/payment_intents\/([^/]+)\/cancel$/.exec(path)?.[1]
      if (id === undefined) return
      const row = (yield* rows).find(({ paymentIntentId }) => paymentIntentId === id)
      if (row === undefined) return
      const named = (yield* Effect.orDie(ledger.events(row.chargeKey))).findLast(({ detail }) => detail?.includes(id))
      if ((looks.get(row.chargeKey) ?? kernel.nowMs) >= (named?.atMs ?? startMs)) violations.push(`reconciliation gave up ${id}, which the row of ${row.chargeKey.slice(0, 6)} names`)
    })

  const compare = (options: Pick<ReconcileOptions, "dryRun" | "orphanAgeMs">): Effect.Effect<Ran | undefined> =>
    Effect.gen(function*() {
      const differences: Array<Difference> = []
      dry = options.dryRun
      const exit = yield* office.ask((services) =>
        Context.get(services, Reconciler).reconcile({ billingPeriod, sinceMs: startMs, ...options }, (difference) => Effect.sync(() => void differences.push(difference))))
      dry = false
      return exit !== undefined && Exit.isSuccess(exit) ? { report: exit.value, differences } : undefined
    })

  /** Until a run has come to its end: after the storm nothing but a rate is in its way. */
  const compareAtRest = (options: Pick<ReconcileOptions, "dryRun" | "orphanAgeMs">): Effect.Effect<Ran> =>
    Effect.flatMap(compare(options), (ran) => ran === undefined ? Effect.andThen(Effect.sleep(60_000), compareAtRest(options)) : Effect.succeed(ran))

  const straysOf = ({ amountMinor, billingPeriod, chargeKey, currency, customerId, item, namespace, stripeCustomerId }: ChargeRequest) =>
    postAt(sim, "/v1/payment_intents", {
      amount: String(amountMinor), currency, customer: stripeCustomerId, "allowed_payment_method_types[0]": "card", "allowed_payment_method_types[1]": "us_bank_account",
      "metadata[charge_key]": chargeKey, "metadata[customer_id]": customerId, "metadata[billing_period]": billingPeriod, "metadata[namespace]": namespace,
      ...(item === undefined ? {} : { "metadata[item]": item }), "metadata[generation]": "1"
    })

  const everything = Effect.gen(function*() {
    const all = yield* rows
    const each = yield* Effect.forEach(all, ({ chargeKey }) => Effect.all([
      ledger.events(chargeKey), Context.get(books, RefundLedger).list(chargeKey), Context.get(books, Sightings).movements(chargeKey)
    ]))
    const posts = (yield* sim.requests).filter(({ method }) => method !== "GET").length
    return structuredClone([all.map((row) => JSON.stringify(row)), each.map((one) => JSON.stringify(one)), yield* cap.report(), yield* Context.get(books, Sightings).unknown("", 1000), yield* sim.books, posts])
  }).pipe(Effect.orDie)

  return {
    offices: [office],
    start: Effect.gen(function*() {
      yield* office.prepare(onCall)
      office.start()
      if (scenario.gateway === "payment_intents") {
        yield* Effect.forEach(strays, ({ atMs, charge }) => Effect.forkChild(Effect.delay(straysOf(requests[charge]!), atMs)))
      }
      // One after the other, as a person would.
      const sorted = runs.toSorted((one, other) => one.atMs - other.atMs)
      yield* Effect.forkChild(Effect.forEach(sorted, ({ atMs, dryRun, orphanAgeMs }) =>
        Effect.andThen(Effect.sleep(Math.max(0, startMs + atMs - kernel.nowMs)), Effect.suspend(() => compare({ dryRun, orphanAgeMs }))), { discard: true }))
    }),
    isAtRest: Effect.succeed(true),
    judge: Effect.gen(function*() {
      const problems: Array<string> = []
      const before = yield* everything
      const told = yield* compareAtRest({ dryRun: true, orphanAgeMs: 0 })
      if (!isDeepStrictEqual(yield* everything, before)) problems.push("a dry run of reconciliation changed something")
      const done = yield* compareAtRest({ dryRun: false, orphanAgeMs: 0 })
      if (!isDeepStrictEqual(told.report.found, done.report.found)) {
        problems.push(`a dry run found ${JSON.stringify(told.report.found)}, and the run after it ${JSON.stringify(done.report.found)}`)
      }
      // In a namespace of which it has no row, because whoever asked was never heard, all may be another ledger's.
      const billed = new Set<string | undefined>((yield* rows).map(({ request }) => request.namespace))
      const isAnothers = (detail: string) => /bills nothing of this period in the namespace ([^:]+):/.exec(detail)?.slice(1).some((namespace) => !billed.has(namespace)) === true
      // What somebody canceled in the Dashboard while it waited for its customer: without webhooks nobody has told the ledger, and it is recorded here.
      const isByHand = scenario.faults.some(({ kind }) => kind === "cancelInDashboard")
      const isCanceledByHand = ({ kind, ledger, objects, repaired }: Difference) =>
        isByHand && kind === "state_differs" && ledger?.state === "requires_action" && objects[0]?.status === "canceled" && repaired === "settled"
      for (const difference of done.differences) {
        const { detail, kind, repaired } = difference
        if (isCanceledByHand(difference)) continue
        if (kind !== "orphan") problems.push(`reconciliation found at rest: ${kind}, ${detail}`)
        else if (repaired === null && scenario.gateway === "payment_intents" && !isAnothers(detail)) problems.push(`reconciliation left a stray: ${detail}`)
      }
      const named = new Set((yield* rows).map(({ paymentIntentId }) => paymentIntentId))
      if (named.size === 0 || scenario.gateway !== "payment_intents") return problems
      // A row that a canceled run has left takes its object in when somebody asks for it after all.
      const waiting = new Set<string | undefined>((yield* rows).filter(({ state }) => state === "planned").map(({ chargeKey }) => chargeKey))
      const isOver = ({ status }: Intent) => status === "canceled" || status === "succeeded"
      const left = (yield* listAt<Intent>(sim, "/v1/payment_intents")).filter((intent) => !isOver(intent) && !named.has(intent.id) && intent.metadata["charge_key"] !== undefined && billed.has(intent.metadata["namespace"]) && !waiting.has(intent.metadata["charge_key"]))
      return [...problems, ...left.map(({ id }) => `reconciliation did not find ${id}, which nobody names`)]
    })
  } satisfies Beside
})
