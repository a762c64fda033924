/**
 * Compares one billing period in the ledger with the account at the processor, both ways, and repairs what evidence allows.
 *
 * The account is listed page by page into a scratch book, then compared in the order of charge keys, so that memory does
 * not grow with the number of payments. Nothing is ever asked of a customer here: payments that the ledger has forgotten
 * are taken into it, unpaid objects that no row names are given up, and everything else is told.
 */
import {
  type AccountList, type AccountPayment, type AccountReader, accountIdentity, type BillingPeriod, chargeAsPayment, ChargeGateway, ChargeKey, type ChargeRecord, type ChargeState,
  Ledger, type PipelineError, ProcessorAccount, ReconcileBook, Sightings, type SpendCap
} from "@purser/core"
import { Clock, type Config, Context, Effect, Layer, Option, Random, Schema } from "effect"
import { ChargePipeline } from "./ChargePipeline.ts"
import { patiently } from "./internal/gatewaySteps.ts"
import { type DifferenceKind, type Finding, judge } from "./internal/judge.ts"
import { makeObserve, unknownOf } from "./internal/observe.ts"
import { identityProblem, isBusy, makeRemedy, requestOf } from "./internal/remedy.ts"
import { makeNoteReversals } from "./internal/reversals.ts"
import { PipelineOptions } from "./PipelineOptions.ts"

export type { DifferenceKind }

/** What to compare. Times in milliseconds of the Unix epoch. */
export interface ReconcileOptions {
  readonly billingPeriod: BillingPeriod
  /** Objects made from here on are listed; after a restore from a backup, a moment before the backup was made. */
  readonly sinceMs: number
  readonly untilMs?: number | undefined
  /** Tells what would be done, and does nothing. */
  readonly dryRun: boolean
  /** Only objects and rows of this namespace, and the account that it names; all when left out. */
  readonly namespace?: string | undefined
  /** An unpaid object that no row names is given up when it is older; an hour unless told. */
  readonly orphanAgeMs?: number | undefined
  /** Whether a forgotten payment's row requests the method that was used (`named`), or the customer's default one. */
  readonly methods?: "named" | "default" | undefined
}

/** One difference, with the evidence. Amounts in minor units. */
export interface Difference {
  readonly kind: DifferenceKind
  readonly chargeKey: string
  readonly customerId: string | null
  readonly item: string | null
  /** 0 for a first billing; null when its metadata do not tell. */
  readonly revision: number | null
  readonly ledger: { readonly state: ChargeState; readonly amountMinor: number; readonly currency: string; readonly paymentIntentId: string | null } | null
  readonly objects: ReadonlyArray<{ readonly id: string; readonly status: string; readonly amountMinor: number; readonly currency: string; readonly createdMs: number }>
  readonly detail: string
  /** What was done about it, or would be in a dry run; null when it remains. */
  readonly repaired: "adopted" | "settled" | "canceled" | null
}

/** The result in numbers. */
export interface ReconcileReport {
  readonly billingPeriod: string
  readonly sinceMs: number
  readonly untilMs: number
  readonly dryRun: boolean
  /** The accounts that were listed; null is the key's own. */
  readonly accounts: ReadonlyArray<string | null>
  /** Objects that the processor listed, those of this period among them, and those that bear no charge key. */
  readonly listed: number
  readonly ours: number
  readonly foreign: number
  /** Rows of the period, and those of them that are still to be charged. */
  readonly rows: number
  readonly open: number
  /** Differences by kind. */
  readonly found: Readonly<Partial<Record<DifferenceKind, number>>>
  readonly repaired: number
  /** In a dry run, nothing is repaired: all that was found remains. */
  readonly remaining: number
}

const pageSize = 1000
const skewMs = 600_000
const isKey = Schema.is(ChargeKey)
const isOpen = (state: ChargeState) => state === "planned" || state === "claimed" || state === "attached"

/** Reconciles. Every method needs nothing. */
export class Reconciler extends Context.Service<Reconciler, {
  /** Runs the comparison; each difference is handed over as it is found. */
  readonly reconcile: (
    options: ReconcileOptions,
    onDifference: (difference: Difference) => Effect.Effect<void>
  ) => Effect.Effect<ReconcileReport, PipelineError>
}>()("@purser/engine/Reconciler") {
  /** Over the pipeline that the app provides. */
  static readonly layerNoDeps: Layer.Layer<
    Reconciler,
    Config.ConfigError,
    Ledger | ChargeGateway | ChargePipeline | ProcessorAccount | ReconcileBook | Sightings
  > = Layer.effect(
    Reconciler,
    Effect.gen(function*() {
      const ledger = yield* Ledger
      const gateway = yield* ChargeGateway
      const account = yield* ProcessorAccount
      const book = yield* ReconcileBook
      const sightings = yield* Sightings
      const given = yield* Effect.serviceOption(PipelineOptions)
      const settings = Option.isSome(given) ? given.value : yield* PipelineOptions.fromConfig
      const worker = `${settings.worker}/reconcile`
      const observe = yield* makeObserve(worker, settings)
      const remedy = yield* makeRemedy(worker, settings)
      const noteReversals = yield* makeNoteReversals

      const run = Effect.fnUntraced(function*(
        options: ReconcileOptions,
        onDifference: (difference: Difference) => Effect.Effect<void>
      ): Effect.fn.Return<ReconcileReport, PipelineError> {
        const nowMs = yield* Clock.currentTimeMillis
        const { billingPeriod, dryRun, namespace } = options
        const range = { fromMs: options.sinceMs - skewMs, toMs: options.untilMs ?? nowMs + skewMs }
        const bookId = `${billingPeriod}-${(yield* Random.nextIntBetween(0, 2 ** 32)).toString(16)}`
        const found: Partial<Record<DifferenceKind, number>> = {}
        const counts = { listed: 0, ours: 0, foreign: 0, invoiced: 0, rows: 0, open: 0, repaired: 0, remaining: 0 }

        const tell = Effect.fnUntraced(function*(record: ChargeRecord | undefined, finding: Omit<Finding, "remedy">, repaired: Difference["repaired"]) {
          found[finding.kind] = (found[finding.kind] ?? 0) + 1
          if (repaired === null || dryRun) counts.remaining += 1
          else counts.repaired += 1
          const identity = finding.objects[0]?.identity
          yield* onDifference({
            kind: finding.kind,
            chargeKey: record?.chargeKey ?? identity?.chargeKey ?? "",
            customerId: record?.request.customerId ?? identity?.customerId ?? null,
            item: record?.request.item ?? identity?.item ?? null,
            revision: record === undefined ? identity?.revision ?? null : record.request.revision ?? 0,
            ledger: record === undefined
              ? null
              : { state: record.state, amountMinor: record.request.amountMinor, currency: record.request.currency, paymentIntentId: record.paymentIntentId },
            objects: finding.objects.map(({ amountMinor, createdMs, currency, id, status }) => ({ id, status, amountMinor, currency, createdMs })),
            detail: finding.detail,
            repaired
          })
        })

        const isWanted = ({ identity }: AccountPayment) =>
          identity?.billingPeriod === billingPeriod && (namespace === undefined || identity.namespace === namespace)

        /** Objects of one account. What a row's steps cannot reach, since they look in the account of its namespace, is told and not kept. */
        const keepOf = (reader: AccountReader) =>
          Effect.fnUntraced(function*(objects: ReadonlyArray<AccountPayment>) {
            const wanted = objects.filter(isWanted)
            const isAtHome = ({ identity }: AccountPayment) => identity?.namespace == null || account.accountOf(identity.namespace) === reader.account
            const ours = wanted.filter(isAtHome)
            counts.listed += objects.length
            counts.ours += ours.length
            counts.foreign += objects.filter(({ identity }) => identity === null).length
            // Each invoice of ours that was finalized has brought a payment of its own, which bears no metadata.
            counts.invoiced += objects.filter(({ id, identity, status }) => id.startsWith("in_") && identity !== null && status !== "draft").length
            yield* book.add(bookId, ours)
            for (const object of wanted) {
              if (isAtHome(object) || (object.status !== "succeeded" && object.status !== "processing")) continue
              const detail = `${object.id} is in ${reader.account ?? "the key's own account"}, which its namespace ${object.identity?.namespace} does not name`
              yield* tell(undefined, { kind: "not_attached", objects: [object], detail }, null)
            }
          })

        const walk = Effect.fnUntraced(function*<A>(
          list: AccountList<A>,
          use: (items: ReadonlyArray<A>) => Effect.Effect<void, PipelineError>
        ): Effect.fn.Return<void, PipelineError> {
          let after: string | undefined
          for (;;) {
            const cursor = after
            const { items, next } = yield* patiently(settings, list(range, cursor))
            yield* use(items)
            if (next === undefined) return
            after = next
          }
        })

        /** Money that stands without an object made before it, and what went back of anything of ours. */
        const chargesOf = (reader: AccountReader) => walk(reader.charges, (items) =>
          Effect.gen(function*() {
            yield* keepOf(reader)(items.filter((charge) => charge.paymentIntentId === null && charge.status !== "failed").map(chargeAsPayment))
            const touched = items.filter((charge) => charge.amountRefundedMinor > 0 || charge.isDisputed)
            yield* Effect.forEach(touched, (charge) => dryRun ? Effect.void : noteReversals(reader, charge, accountIdentity(charge.metadata)?.chargeKey), { discard: true })
          }))

        /** The row's own object, when the list did not hold it: it may be older than the list. */
        const lookAt = Effect.fnUntraced(function*(record: ChargeRecord, finding: Finding): Effect.fn.Return<void, PipelineError> {
          const id = record.paymentIntentId ?? ""
          const { attempt, chargeKey, generation, request } = record
          const own = id.startsWith("charges:")
            ? yield* patiently(settings, gateway.retrieve({ chargeKey, request, generation, attempt }, id))
            : yield* patiently(settings, account.at(account.accountOf(request.namespace)).payment(id))
          if (own?.status !== "succeeded") {
            const detail = own === undefined ? `${id} does not exist at the processor` : `${id} is ${own.status}`
            return yield* tell(record, { kind: own === undefined ? "missing_there" : "state_differs", objects: finding.objects, detail }, null)
          }
          if (finding.objects.length > 0) {
            yield* tell(record, { ...finding, kind: "paid_twice", detail: `${id} is paid as well` }, null)
          }
        })

        const settled = Effect.fnUntraced(function*(record: ChargeRecord, finding: Finding): Effect.fn.Return<void, PipelineError> {
          const { verdict } = dryRun ? { verdict: "settled" } : yield* observe(finding.objects[0]!)
          return yield* tell(record, finding, verdict === "settled" || verdict === "unchanged" ? "settled" : null)
        })

        const unnamed = "a charge (ch_…) is taken in by a gateway that can name it (charges) alone"

        const act = (record: ChargeRecord, finding: Finding): Effect.Effect<void, PipelineError> => {
          const object = finding.objects[0]
          switch (finding.remedy) {
            case "none":
              return tell(record, finding, null)
            case "look":
              return lookAt(record, finding)
            case "settle":
              return settled(record, finding)
            case "adopt":
              return remedy.nameOf(record.chargeKey, object!) === undefined
                ? tell(record, { ...finding, detail: `${finding.detail}; not taken in: ${unnamed}` }, null)
                : Effect.flatMap(dryRun ? Effect.succeed(true) : remedy.adopt(record.request, object!), (done) =>
                  tell(record, done ? finding : { ...finding, detail: `${finding.detail}; not taken in: somebody else holds the row` }, done ? "adopted" : null))
            case "cancel":
              return Effect.flatMap(dryRun ? Effect.succeed(true) : remedy.cancel(record, object!), (done) => tell(record, finding, done ? "canceled" : null))
          }
        }

        const perhaps = (record: ChargeRecord | undefined, finding: Finding, effect: Effect.Effect<void, PipelineError>) =>
          Effect.catchIf(effect, isBusy, (error) => tell(record, { ...finding, detail: `${finding.detail}; left alone: ${error.message}` }, null))

        const rows = Effect.gen(function*() {
          let after = ""
          for (;;) {
            const page = yield* ledger.page(billingPeriod, after, pageSize)
            const records = page.filter(({ request }) => namespace === undefined || request.namespace === namespace)
            const objects = Map.groupBy(yield* book.objects(bookId, records.map(({ chargeKey }) => chargeKey)), ({ identity }) => identity?.chargeKey ?? "")
            for (const record of records) {
              counts.rows += 1
              if (isOpen(record.state)) counts.open += 1
              for (const finding of judge(record, objects.get(record.chargeKey) ?? [], { nowMs, orphanAgeMs: options.orphanAgeMs ?? 3_600_000 })) {
                yield* perhaps(record, finding, act(record, finding))
              }
            }
            if (page.length < pageSize) return
            after = page.at(-1)!.chargeKey
          }
        })

        /** Why a payment without a row is left; `asked` when the ledger itself would not take it. */
        const whyLeft = (object: AccountPayment, asked: boolean): string => {
          if (asked) return (object.identity?.revision ?? 0) > 0
            ? "the charge that it bills anew is not in the ledger as paid, or somebody else holds the row"
            : "somebody else holds the row"
          if (object.status !== "succeeded") return `it is ${object.status}`
          const key = object.identity?.chargeKey ?? ""
          return identityProblem(object) ?? (isKey(key) && remedy.nameOf(key, object) === undefined ? unnamed : "its terms are not those of a charge")
        }

        /** An unpaid object of an identity that the ledger does not know. Given up where nothing else could come to use it. */
        const withoutOwner = Effect.fnUntraced(function*(object: AccountPayment, known: ReadonlySet<string>): Effect.fn.Return<void, PipelineError> {
          const request = requestOf(object, "named")
          const left = !object.id.startsWith("pi_") ? "it is no PaymentIntent"
            : settings.restorePointMs !== undefined ? "the next run adopts it, since a restore point is set"
            : request === undefined ? identityProblem(object) ?? "its terms are not those of a charge"
            : !known.has(request.namespace) ? `the ledger bills nothing of this period in the namespace ${request.namespace}: it may be another ledger's`
            : nowMs - object.createdMs < (options.orphanAgeMs ?? 3_600_000) ? "it is too young: somebody may be about to use it"
            : undefined
          const done = left === undefined && request !== undefined && (dryRun || (yield* remedy.giveUp(request, object)))
          const why = done ? "" : `; left alone: ${left ?? "it changed meanwhile"}`
          return yield* tell(undefined, { kind: "orphan", objects: [object], detail: `${object.id} is ${object.status}, and the ledger has no such row${why}` }, done ? "canceled" : null)
        })

        /** A payment whose row is not there: taken in as a row of its own, when its metadata tell the whole identity. */
        const takeIn = Effect.fnUntraced(function*(object: AccountPayment): Effect.fn.Return<void, PipelineError> {
          const key = object.identity?.chargeKey ?? ""
          if (isKey(key) && (yield* ledger.find(key)) !== undefined) {
            // Another object of the same key was taken in just now.
            return yield* tell(undefined, { kind: "paid_twice", objects: [object], detail: "another payment bears this charge key" }, null)
          }
          const request = object.status === "succeeded" && isKey(key) && remedy.nameOf(key, object) !== undefined
            ? requestOf(object, options.methods ?? "named")
            : undefined
          const done = request !== undefined && (dryRun || (yield* remedy.adopt(request, object)))
          const finding = {
            kind: "missing_here" as const,
            objects: [object],
            detail: `the ledger has no such row${done ? "" : `; not taken in: ${whyLeft(object, request !== undefined)}`}`
          }
          if (!done && !dryRun) yield* sightings.list(unknownOf(object, "missing_here", finding.detail))
          if (done && !dryRun) yield* sightings.unlist(object.id, "taken into the ledger by reconciliation")
          return yield* tell(undefined, finding, done ? "adopted" : null)
        })

        /** Objects of one revision, and which is the next that has any: a revision is taken in after what it bills anew. */
        const withoutRowOf = Effect.fnUntraced(function*(revision: number, known: ReadonlySet<string>) {
          let after = ""
          let higher = Infinity
          for (;;) {
            const { next, objects } = yield* book.withoutRow(bookId, after, pageSize)
            for (const object of objects) {
              const its = object.identity?.revision ?? 0
              if (its > revision) higher = Math.min(higher, its)
              if (its !== revision) continue
              const finding: Finding = { kind: "missing_here", objects: [object], detail: "the ledger has no such row", remedy: "adopt" }
              if (object.status === "succeeded" || object.status === "processing") yield* perhaps(undefined, finding, takeIn(object))
              else if (object.status !== "canceled") {
                const orphan: Finding = { kind: "orphan", objects: [object], detail: `${object.id} is ${object.status}, and the ledger has no such row`, remedy: "cancel" }
                yield* perhaps(undefined, orphan, withoutOwner(object, known))
              }
            }
            if (next === undefined) return higher
            after = next
          }
        })
        const withoutRow = Effect.fnUntraced(function*(known: ReadonlySet<string>) {
          for (let revision = 0; Number.isFinite(revision);) revision = yield* withoutRowOf(revision, known)
        })

        yield* book.begin(bookId)
        const namespaces = namespace === undefined ? yield* ledger.namespaces(billingPeriod) : [namespace]
        const accounts = [...new Set([...(namespace === undefined ? [account.account] : []), ...namespaces.map(account.accountOf)])]
        yield* Effect.gen(function*() {
          for (const reader of accounts.map(account.at)) {
            yield* walk(reader.payments, keepOf(reader))
            if (gateway.name === "invoices") yield* walk(reader.invoices, keepOf(reader))
            yield* chargesOf(reader)
          }
          yield* rows
          yield* withoutRow(new Set(namespaces))
        }).pipe(Effect.ensuring(Effect.ignore(book.discard(bookId))))
        const { invoiced, ...figures } = counts
        const foreign = Math.max(0, counts.foreign - invoiced)
        return { billingPeriod, sinceMs: options.sinceMs, untilMs: range.toMs, dryRun, accounts, ...figures, foreign, found }
      })

      return Reconciler.of({ reconcile: Effect.fn("Reconciler.reconcile")(run) })
    })
  )

  /** With a pipeline of its own. */
  static readonly layer: Layer.Layer<
    Reconciler,
    Config.ConfigError,
    Ledger | SpendCap | ChargeGateway | ProcessorAccount | ReconcileBook | Sightings
  > = Reconciler.layerNoDeps.pipe(Layer.provide(ChargePipeline.layer))
}
