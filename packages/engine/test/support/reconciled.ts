/** A reconciliation over a ledger and an account that a test writes: what it asked for, told and did. */
import {
  type AccountCharge, type AccountPayment, type AccountReader, ChargeGateway, type ChargeRecord, type ChargeState, Ledger, ProcessorAccount, ReconcileBook, Sightings, Succeeded
} from "@purser/core"
import { assert } from "@effect/vitest"
import { Effect, Layer, type Types } from "effect"
import { TestClock } from "effect/testing"
import { ChargePipeline } from "../../src/ChargePipeline.ts"
import { PipelineOptions, type PipelineSettings } from "../../src/PipelineOptions.ts"
import { type Difference, Reconciler, type ReconcileOptions } from "../../src/Reconciler.ts"
import { charge as claimed, chargeKey, payment, request, requestWith, succeeded } from "./scripted.ts"

export const hourMs = 3_600_000
export const nowMs = 100 * hourMs
export const skewMs = 600_000
const billed = { namespace: "zmq-billing", billingPeriod: request.billingPeriod }
export const identity = { chargeKey, customerId: "acme", ...billed, item: null, revision: 0, generation: 1 } as const
export const object = (more: Partial<AccountPayment> = {}): AccountPayment => ({
  id: "pi_1", status: "succeeded", amountMinor: 1999, amountReceivedMinor: 1999, currency: "usd", stripeCustomerId: "cus_1", createdMs: 0, chargeId: null, paymentMethod: "pm_1", identity, ...more
})
export const chargeOf = (more: Partial<AccountCharge> = {}): AccountCharge => ({
  id: "ch_1", paymentIntentId: null, status: "succeeded", amountMinor: 1999, amountRefundedMinor: 0, currency: "usd", stripeCustomerId: "cus_1", createdMs: 0, isDisputed: false, paymentMethod: "pm_1",
  description: null, metadata: { charge_key: chargeKey, customer_id: "acme", billing_period: "2026-07", namespace: "zmq-billing" }, ...more
})
export const row = (state: ChargeState, more: Partial<ChargeRecord> = {}): ChargeRecord => ({
  chargeKey, request, state, attempt: 1, generation: 1, paymentIntentId: "pi_1", outcome: state === "succeeded" ? succeeded() : null, quarantine: null, nextAttemptAtMs: null, chosenMethod: null,
  revises: null, ...more
})
/** Of another customer. */
export const other = requestWith({ paymentMethod: "pm_1", customerId: "other" })

/** What a reconciliation finds. */
export interface World {
  readonly rows?: ReadonlyArray<ChargeRecord>
  readonly payments?: ReadonlyArray<AccountPayment>
  readonly invoices?: ReadonlyArray<AccountPayment>
  readonly charges?: ReadonlyArray<AccountCharge>
  readonly ledger?: Partial<Ledger["Service"]>
  readonly gateway?: Partial<ChargeGateway["Service"]>
  readonly settings?: Partial<PipelineSettings>
  readonly account?: Partial<AccountReader>
  readonly accountOf?: (namespace: string) => string | null
  /** Of connected accounts. */
  readonly elsewhere?: Readonly<Record<string, ReadonlyArray<AccountPayment>>>
  readonly resume?: ChargePipeline["Service"]["resume"]
  readonly book?: Partial<ReconcileBook["Service"]>
  /** Where to note what is asked, for a run that fails. */
  readonly asked?: Array<string>
}

/** Runs it at a fixed time; answers the report, what was told, and what was asked for. */
export const reconciled = (world: World, options: Partial<Types.Mutable<ReconcileOptions>> = {}) => {
  const asked = world.asked ?? []
  const differences: Array<Difference> = []
  const note = (line: string) => Effect.sync(() => void asked.push(line))
  const rows = world.rows ?? []
  const list = <A>(name: string, items: ReadonlyArray<A>) => (range: { readonly fromMs: number; readonly toMs: number }, after: string | undefined) =>
    Effect.as(note(`${name} ${range.fromMs} ${range.toMs} ${after ?? ""}`.trim()), items.length < 2 || after !== undefined
      ? { items: after === undefined ? items : items.slice(1), next: undefined } : { items: items.slice(0, 1), next: "first" })
  const readerOf = (account: string | null): AccountReader => {
    const payments = account === null ? world.payments ?? [] : world.elsewhere?.[account] ?? []
    const at = account === null ? "" : `${account} `
    return {
      account,
      payment: (id) => Effect.as(note(`${at}payment ${id}`), payments.find((one) => one.id === id)),
      invoiceOf: () => Effect.die("not asked"), charge: () => Effect.die("not asked"), reversal: () => Effect.die("not asked"), origins: () => Effect.die("not asked"),
      refundsOf: (id) => Effect.as(note(`refunds of ${id}`), [{ id: "re_1", kind: "refund", chargeId: id, paymentIntentId: null, amountMinor: 5, currency: "usd", status: "succeeded", reason: null, createdMs: 0, metadata: {} }]),
      disputesOf: (id) => Effect.as(note(`disputes of ${id}`), []),
      payments: list(`${at}payments`, payments), charges: list(`${at}charges`, account === null ? world.charges ?? [] : []), invoices: list(`${at}invoices`, world.invoices ?? []),
      ...(account === null ? world.account : {})
    }
  }
  const own = readerOf(null)
  const ledger = Layer.effect(Ledger, Effect.map(Ledger, (memory) => Ledger.of({
    ...memory,
    page: (period, afterKey, limit) => Effect.as(note(`page ${period} ${afterKey.slice(-4)} ${limit}`.replace("  ", " ")), afterKey === "" ? rows : []),
    find: (key) => Effect.succeed(rows.find((one) => one.chargeKey === key)),
    namespaces: (period) => Effect.as(note(`namespaces ${period}`), ["zmq-billing"]),
    adopt: ({ paymentIntentId, paymentMethod, request: of, worker }) => Effect.as(note(`adopt ${of.customerId} ${paymentIntentId} ${paymentMethod} ${of.paymentMethod ?? "default"} ${worker}`), claimed()),
    takeWaiting: () => Effect.as(note("take"), claimed()),
    ...world.ledger
  }))).pipe(Layer.provide(Ledger.layerMemory))
  const pipeline = Layer.succeed(ChargePipeline, ChargePipeline.of({
    charge: () => Effect.die("nobody is asked for money"), releaseDue: () => Effect.die("not asked"), releaseUnpaid: () => Effect.die("not asked"),
    resume: world.resume ?? ((charge) => Effect.as(note("resume"), new Succeeded({ chargeKey: charge.lease.chargeKey, alreadySettled: false, paymentIntentId: "pi_1", chargeId: null, amountReceivedMinor: 1999 })))
  }))
  const gateway = Layer.succeed(ChargeGateway, ChargeGateway.of({
    name: "scripted", create: () => Effect.die("not asked"), find: () => Effect.die("not asked"), confirm: () => Effect.die("nobody is asked for money"), defaultPaymentMethod: () => Effect.die("not asked"),
    retrieve: (order, id) => Effect.as(note(`retrieve ${id} ${order.generation} ${order.attempt}`), payment({ status: "succeeded" })),
    cancel: (order, id) => Effect.as(note(`cancel ${id} ${order.generation} ${order.attempt}`), payment({ status: "canceled" })),
    ...world.gateway
  }))
  const books = Layer.mergeAll(
    Layer.effect(ReconcileBook, Effect.map(ReconcileBook, (book) => ReconcileBook.of({
      ...book,
      begin: (id) => Effect.andThen(note(`begin ${/^2026-07-[0-9a-f]+$/.test(id)}`), book.begin(id)),
      discard: (id) => Effect.andThen(note("discard"), book.discard(id)),
      ...world.book
    }))).pipe(Layer.provide(ReconcileBook.layerMemory)),
    Layer.effect(Sightings, Effect.map(Sightings, (sightings) => Sightings.of({
      ...sightings,
      note: ({ chargeKey: key, id }) => note(`note ${id} ${key.slice(0, 4)}`),
      list: ({ detail, id, reason }) => note(`list ${id} ${reason} ${detail}`),
      unlist: (id, resolution) => Effect.as(note(`unlist ${id} ${resolution}`), true)
    }))).pipe(Layer.provide(Sightings.layerMemory))
  )
  const layer = Reconciler.layerNoDeps.pipe(
    Layer.provide(books), Layer.provide(Layer.mergeAll(
      ledger, pipeline, gateway, PipelineOptions.layer({ worker: "w", restorePointMs: undefined, ...world.settings }),
      Layer.succeed(ProcessorAccount, { ...own, accountOf: world.accountOf ?? (() => null), at: (account) => account === null ? own : readerOf(account) })
    ))
  )
  return Effect.gen(function*() {
    yield* TestClock.setTime(nowMs)
    const report = yield* (yield* Reconciler).reconcile(
      { billingPeriod: request.billingPeriod, sinceMs: hourMs, dryRun: false, ...options }, (difference) => Effect.sync(() => void differences.push(difference))
    )
    for (const { kind, ledger: of, objects } of differences) if (of === null) assert.isNotEmpty(objects, kind)
    return { acts: asked.filter((line) => !/^(?:begin|page|namespaces|payments|charges|discard)\b/.test(line)), asked, differences, report, told: differences.map(({ detail, kind, repaired }) => [kind, detail, repaired]) }
  }).pipe(Effect.provide(layer))
}
