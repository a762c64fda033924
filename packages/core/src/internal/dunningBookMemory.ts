/** The dunning book over a map and the memory ledger's rows, on Effect's clock: the readable twin of the SQL driver. */
import { Clock, Effect } from "effect"
import type { ChargeKey } from "../ChargeKey.ts"
import type { DunningAct, DunningBook, DunningCase, DunningEnd, DunningView, OfferedMethod, OpenCaseAnswer } from "../DunningBook.ts"
import { Ledger } from "../Ledger.ts"
import type { CapScope } from "../SpendCap.ts"
import { memoryRows, type MemoryRow, snapshotOf } from "./ledgerMemory.ts"

interface Case {
  readonly chargeKey: ChargeKey
  readonly caseId: string
  readonly number: number
  readonly opened: DunningAct & { readonly attempt: number; readonly atMs: number }
  state: "open" | DunningEnd
  workflow: "due" | "running" | "over"
  step: number
  /** Events of the charge when the workflow last looked. */
  seen: number
  /** Null once something has happened that the workflow has not seen: then it is woken. */
  goesOnAtMs: number | null
  note: string | null
  closed: DunningAct & { readonly atMs: number } | null
  offered: OfferedMethod | null
}

const isUnder = ({ billingPeriod, currency, namespace }: CapScope, { request }: MemoryRow) =>
  request.namespace === namespace && request.billingPeriod === billingPeriod && request.currency === currency
const namesMethod = ({ chosenMethod, request }: MemoryRow) => chosenMethod !== null || request.paymentMethod !== undefined
const inWork = (row: MemoryRow) => row.state === "planned" || row.state === "claimed" || row.state === "attached" || row.state === "processing"

export const makeDunningBookMemory: Effect.Effect<DunningBook["Service"], never, Ledger> = Effect.gen(function*() {
  const ledger = yield* Ledger
  const clock = yield* Clock.Clock
  const rows = memoryRows.get(ledger)
  if (rows === undefined) return yield* Effect.die(new Error("Bug: DunningBook.layerMemory works over Ledger.layerMemory only"))
  const now = () => clock.currentTimeMillisUnsafe()
  const cases = new Map<string, Case>()
  const all = () => [...cases.values()]
  const openOf = (chargeKey: ChargeKey) => all().find((one) => one.chargeKey === chargeKey && one.state === "open")
  const openCasesOf = (stripeCustomerId: string) =>
    all().filter((one) => one.state === "open" && rows.get(one.chargeKey)!.request.stripeCustomerId === stripeCustomerId)
  const ids = (found: ReadonlyArray<Case>) => found.map(({ caseId }) => caseId)

  const caseOf = (one: Case): DunningCase => ({
    caseId: one.caseId,
    chargeKey: one.chargeKey,
    number: one.number,
    stripeCustomerId: rows.get(one.chargeKey)!.request.stripeCustomerId,
    state: one.state,
    openedAttempt: one.opened.attempt,
    openedBy: one.opened.actor,
    reason: one.opened.reason,
    openedAtMs: one.opened.atMs,
    goesOnAtMs: one.state === "open" ? one.goesOnAtMs : null,
    closedAtMs: one.closed?.atMs ?? null,
    closedBy: one.closed?.actor ?? null,
    detail: one.closed?.reason ?? one.note
  })
  const viewOf = (one: Case): DunningView => {
    const record = snapshotOf(rows.get(one.chargeKey)!)
    return {
      case: caseOf(one),
      record,
      dueInMs: record.nextAttemptAtMs === null ? null : record.nextAttemptAtMs - now(),
      settledForMs: record.settledAtMs === null ? 0 : now() - record.settledAtMs,
      offered: one.offered
    }
  }
  const newest = (found: ReadonlyArray<Case>) =>
    [...found].sort((a, b) => b.opened.atMs - a.opened.atMs || (a.caseId < b.caseId ? 1 : -1)).map(viewOf)

  const add = (row: MemoryRow, { actor, reason }: DunningAct): Case => {
    const { attempt, chargeKey } = row
    const number = all().filter((one) => one.chargeKey === chargeKey).length + 1
    const one: Case = {
      chargeKey,
      number,
      caseId: `${chargeKey}.${number}`,
      opened: { actor, reason, attempt, atMs: now() },
      state: "open",
      workflow: "due",
      step: 0,
      seen: 0,
      goesOnAtMs: null,
      note: null,
      closed: null,
      offered: null
    }
    cases.set(one.caseId, one)
    return one
  }

  const service: DunningBook["Service"] = {
    open: (chargeKey, act) =>
      Effect.sync((): OpenCaseAnswer => {
        const row = rows.get(chargeKey)
        const present = openOf(chargeKey)
        if (present !== undefined) return { _tag: "Present", case: caseOf(present) }
        if (row?.state !== "declined" || row.quarantine !== null) return { _tag: "NotDeclined", state: row?.state ?? null }
        row.dunningDue = false
        return { _tag: "Opened", case: caseOf(add(row, act)) }
      }),
    openDue: ({ actor, limit, maxAgeMs, reason }) =>
      Effect.sync(() => {
        const due = [...rows.values()].filter((row) => row.dunningDue).slice(0, limit)
        let opened = 0
        for (const row of due) {
          row.dunningDue = false
          const isNew = row.quarantine === null && now() - (row.settledAtMs ?? 0) <= maxAgeMs
          if (!isNew || openOf(row.chargeKey) !== undefined) continue
          add(row, { actor, reason })
          opened += 1
        }
        return { opened, passed: due.length - opened }
      }),
    toStart: (limit) => Effect.sync(() => ids(all().filter(({ workflow }) => workflow === "due").slice(0, limit))),
    started: (caseId) =>
      Effect.sync(() => {
        const one = cases.get(caseId)
        if (one?.workflow === "due") one.workflow = "running"
      }),
    running: (afterId, limit) =>
      Effect.sync(() => ids(all().filter(({ caseId, workflow }) => workflow === "running" && caseId > afterId)).sort().slice(0, limit)),
    look: (caseId, step) =>
      Effect.sync(() => {
        const one = cases.get(caseId)
        if (one === undefined) return undefined
        one.step = step
        one.seen = rows.get(one.chargeKey)!.events.length
        one.goesOnAtMs ??= now()
        return viewOf(one)
      }),
    waits: (caseId, step, forMs, note) =>
      Effect.sync(() => {
        const one = cases.get(caseId)
        // What nobody has seen yet ends the wait before it begins.
        if (one?.step !== step || one.goesOnAtMs === null) return
        one.goesOnAtMs = now() + forMs
        one.note = note ?? null
      }),
    followed: (scope) =>
      Effect.sync(() => {
        const under = [...rows.values()].filter((row) => isUnder(scope, row))
        const isAsked = ({ chargeKey, nextAttemptAtMs, state }: MemoryRow) => openOf(chargeKey) !== undefined || (state === "declined" && nextAttemptAtMs !== null)
        const isUnseen = (row: MemoryRow) => row.dunningDue && row.state === "declined" && row.quarantine === null && !isAsked(row)
        return { asked: under.filter(isAsked).length, unseen: under.filter(isUnseen).length }
      }),
    moved: (afterId, limit) =>
      Effect.sync(() =>
        all().sort((a, b) => a.caseId < b.caseId ? -1 : 1).filter((one) => {
          const row = rows.get(one.chargeKey)!
          return one.workflow === "running" && one.step > 0 && one.caseId > afterId
            && (one.state !== "open" || one.goesOnAtMs === null || (row.events.length !== one.seen && !inWork(row)))
        }).slice(0, limit).map(({ caseId, step }) => ({ caseId, step }))
      ),
    close: (caseId, end, { actor, reason }) =>
      Effect.sync(() => {
        const one = cases.get(caseId)
        if (one?.state !== "open") return false
        one.state = end
        one.closed = { actor, reason, atMs: now() }
        one.goesOnAtMs = null
        one.offered = null
        const row = rows.get(one.chargeKey)!
        row.dunningDue = end === "new_method" && row.state === "declined"
        return true
      }),
    finished: (caseId) =>
      Effect.sync(() => {
        const one = cases.get(caseId)
        if (one !== undefined) one.workflow = "over"
      }),
    offer: (stripeCustomerId, paymentMethod, act, read) =>
      Effect.sync(() => {
        const taking = openCasesOf(stripeCustomerId).filter((one) => {
          const row = rows.get(one.chargeKey)!
          const isMeant = read === undefined || (row.paymentMethod !== read.paymentMethod && read.namespaces.includes(row.request.namespace))
          return (paymentMethod !== null || !namesMethod(row)) && isMeant
        })
        for (const one of taking) {
          one.offered = { ...act, paymentMethod, attempt: rows.get(one.chargeKey)!.attempt }
          one.goesOnAtMs = null
        }
        return taking.length
      }),
    roomMade: (scope) =>
      Effect.sync(() => {
        const waiting = all().filter((one) => one.state === "open" && one.note !== null && isUnder(scope, rows.get(one.chargeKey)!))
        for (const one of waiting) one.goesOnAtMs = null
        return waiting.length
      }),
    openOf: (stripeCustomerId) =>
      Effect.sync(() => newest(openCasesOf(stripeCustomerId).filter((one) => !namesMethod(rows.get(one.chargeKey)!)))),
    list: ({ limit, onlyOpen }) => Effect.sync(() => newest(all().filter(({ state }) => !onlyOpen || state === "open")).slice(0, limit)),
    casesOf: (chargeKey) => Effect.sync(() => newest(all().filter((one) => one.chargeKey === chargeKey)))
  }
  return service
})
