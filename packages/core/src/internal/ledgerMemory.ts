/**
 * The ledger's state machine over a map, on Effect's clock. It is the readable twin of the SQL driver: both pass the
 * same conformance suite. Steps are synchronous, so that each is atomic.
 */
import { Clock, Effect } from "effect"
import { type ChargeKey, chargeKeyOf, revisedIdentity } from "../ChargeKey.ts"
import { asAlreadySettled, type ChargeOutcome, movedNothing, Processing } from "../ChargeOutcome.ts"
import { Principal } from "../Principal.ts"
import { type ChargeRequest, type ChargeTerms, chargeTerms } from "../ChargeRequest.ts"
import type { ChargeEvent, ChargeState, ClaimAnswer, ClaimedCharge, ClaimExtras, Lease, Ledger, SettleAnswer, StateTotal } from "../Ledger.ts"

/** One charge as the memory ledger keeps it. */
export interface MemoryRow {
  readonly chargeKey: ChargeKey
  request: ChargeRequest
  state: ChargeState
  generation: number
  attempt: number
  paymentIntentId: string | null
  paymentMethod: string | null
  /** As later deliveries are told it. */
  outcome: ChargeOutcome | null
  epoch: number
  leaseUntilMs: number
  firstClaimedAtMs: number | null
  quarantine: string | null
  nextAttemptAtMs: number | null
  chosenMethod: string | null
  declinedChargeId: string | null
  revises: ChargeKey | null
  releaseDue: boolean
  /** Declined, and nobody has looked whether a dunning case is to follow. */
  dunningDue: boolean
  settledAtMs: number | null
  readonly events: Array<ChargeEvent>
}

const stateOf: Record<ChargeOutcome["_tag"], ChargeState> = {
  Succeeded: "succeeded",
  Declined: "declined",
  Processing: "processing",
  RequiresAction: "requires_action",
  Rejected: "rejected",
  Canceled: "canceled"
}

export const sameTerms = (a: ChargeTerms, b: ChargeTerms): boolean =>
  a.amountMinor === b.amountMinor && a.currency === b.currency && a.stripeCustomerId === b.stripeCustomerId
  && a.paymentMethod === b.paymentMethod

const isOneOf = (states: ReadonlyArray<ChargeState>, state: ChargeState) => states.includes(state)
/** Nothing is known of its money yet. */
const isOpen = ({ state }: MemoryRow) => state === "planned" || state === "claimed" || state === "attached"
/** Somebody works on it, or is to. */
const isHeld = ({ state }: MemoryRow) => state === "claimed" || state === "attached" || state === "processing"

/** The row as it is now: what was read stays as it was read. */
export const snapshotOf = <R extends object>(row: R): R => ({ ...row })

/** The maps behind memory ledgers, so that the memory run book can plan rows in the same act. */
export const memoryRows = new WeakMap<object, Map<ChargeKey, MemoryRow>>()

const newRow = (request: ChargeRequest, chargeKey: ChargeKey, revises: ChargeKey | null): MemoryRow => ({
  chargeKey,
  request,
  state: "planned",
  generation: 1,
  attempt: 1,
  paymentIntentId: null,
  paymentMethod: request.paymentMethod ?? null,
  outcome: null,
  epoch: 0,
  leaseUntilMs: 0,
  firstClaimedAtMs: null,
  quarantine: null,
  nextAttemptAtMs: null,
  chosenMethod: null,
  declinedChargeId: null,
  revises,
  releaseDue: false,
  dunningDue: false,
  settledAtMs: null,
  events: []
})

/** A row that nobody has claimed. */
export const plannedRow = (
  request: ChargeRequest,
  chargeKey: ChargeKey,
  nowMs: number,
  revises: ChargeKey | null = null,
  detail: string | null = null
): MemoryRow => {
  const row = newRow(request, chargeKey, revises)
  record(row, nowMs, null, detail)
  return row
}

const record = (row: MemoryRow, atMs: number, worker: string | null, detail: string | null, principal: string | null = null) => {
  row.events.push({
    chargeKey: row.chargeKey,
    sequence: row.events.length + 1,
    atMs,
    from: row.events.at(-1)?.to ?? null,
    to: row.state,
    worker,
    attempt: row.attempt,
    detail,
    principal
  })
}

export const makeLedgerMemory = Effect.fnUntraced(function*(options: { readonly leaseMs: number }) {
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe()
  const rows = new Map<ChargeKey, MemoryRow>()

  const move = (row: MemoryRow, to: ChargeState, worker: string | null, detail: string | null, principal: string | null = null) => {
    row.state = to
    record(row, now(), worker, detail, principal)
  }
  const owns = (row: MemoryRow | undefined, lease: Lease): row is MemoryRow => row !== undefined && row.epoch === lease.epoch && isHeld(row)
  const holds = (row: MemoryRow | undefined, lease: Lease): row is MemoryRow => owns(row, lease) && row.quarantine === null

  /** Gives the row to a worker, in the state in which it is taken up. */
  const take = (row: MemoryRow, worker: string, to: ClaimedCharge["state"], detail: string | null, principal: string | null = null): ClaimedCharge => {
    const resumed = row.firstClaimedAtMs !== null
    row.epoch += 1
    row.leaseUntilMs = now() + options.leaseMs
    row.firstClaimedAtMs ??= now()
    move(row, to, worker, detail, principal)
    return {
      lease: { chargeKey: row.chargeKey, worker, epoch: row.epoch },
      leaseLeftMs: options.leaseMs,
      request: row.request,
      state: to,
      resumed,
      generation: row.generation,
      attempt: row.attempt,
      paymentIntentId: row.paymentIntentId,
      paymentMethod: row.paymentMethod,
      chosenMethod: row.chosenMethod ?? row.request.paymentMethod ?? null,
      declinedChargeId: row.declinedChargeId,
      sinceFirstClaimMs: now() - row.firstClaimedAtMs,
      firstClaimedAtMs: row.firstClaimedAtMs
    }
  }

  const takeOver = (row: MemoryRow, worker: string, principal: string | null = null) =>
    take(row, worker, row.state as ClaimedCharge["state"], "taken over", principal)

  const claim = (request: ChargeRequest, worker: string, principal: string | null, extras: ClaimExtras | undefined): ClaimAnswer => {
    const chargeKey = request.chargeKey
    const found = rows.get(chargeKey)
    if (found === undefined && request.revision !== undefined) return { _tag: "Unopened" }
    const row = found ?? newRow(request, chargeKey, null)
    const expected = chargeTerms(row.request)
    const actual = chargeTerms(request)
    if (!sameTerms(expected, actual)) return { _tag: "Conflict", expected, actual }
    if (row.quarantine !== null) return { _tag: "Quarantined", detail: row.quarantine }
    if (!isOpen(row)) return { _tag: "AlreadySettled", outcome: row.outcome! }
    if (row.leaseUntilMs > now()) return { _tag: "InProgress", leaseLeftMs: row.leaseUntilMs - now() }
    rows.set(chargeKey, row)
    if (row.state !== "planned") return { _tag: "Claimed", charge: takeOver(row, worker, principal) }
    // Only the first claim names an object, and none of what is billed anew.
    const object = row.epoch === 0 && request.revision === undefined ? extras?.object : undefined
    if (object === undefined) return { _tag: "Claimed", charge: take(row, worker, "claimed", null, principal) }
    row.paymentIntentId = object.id
    row.paymentMethod = object.paymentMethod
    return { _tag: "Claimed", charge: take(row, worker, "attached", object.id, principal) }
  }

  const settle: Ledger["Service"]["settle"] = (input) =>
    Effect.sync((): SettleAnswer => {
      const row = rows.get(input.lease.chargeKey)
      if (row === undefined) return { _tag: "LeaseLost" }
      const success = input.outcome._tag === "Succeeded"
      // A payment of the attached object is a fact: it is recorded whoever holds the lease.
      const proved = success && row.paymentIntentId !== null && row.paymentIntentId === input.paymentIntentId && row.state !== "succeeded"
      const ours = owns(row, input.lease) && row.attempt === input.attempt
      if (!proved && !ours) {
        return isOpen(row) ? { _tag: "LeaseLost" } : { _tag: "Recorded", outcome: row.outcome! }
      }
      const from = row.state
      const to = stateOf[input.outcome._tag]
      row.leaseUntilMs = to === "processing" ? now() + (input.pollAfterMs ?? 0) : 0
      if (from === to) return { _tag: "Recorded", outcome: input.outcome }
      row.outcome = asAlreadySettled(input.outcome)
      row.releaseDue = movedNothing(input.outcome)
      row.dunningDue = to === "declined"
      row.settledAtMs = to === "processing" ? null : now()
      if ("declinedChargeId" in input.outcome) row.declinedChargeId = input.outcome.declinedChargeId ?? row.declinedChargeId
      const afterMs = input.outcome._tag === "Declined" ? input.nextAttemptAfterMs ?? null : null
      row.nextAttemptAtMs = afterMs === null ? null : now() + afterMs
      const isLate = success && (from === "declined" || from === "rejected" || from === "canceled")
      move(row, to, input.lease.worker, isLate ? `late success after ${from}` : "detail" in input.outcome ? input.outcome.detail : null)
      return ours ? { _tag: "Settled", outcome: input.outcome } : { _tag: "Settled", outcome: input.outcome, late: true }
    })

  const service: Ledger["Service"] = {
    claim: (request, worker, extras) => Effect.map(Principal, (principal) => claim(request, worker, principal, extras)),
    attach: (input) =>
      Effect.sync(() => {
        const row = rows.get(input.lease.chargeKey)
        if (row?.paymentIntentId === input.paymentIntentId && row.generation === input.generation) {
          if (owns(row, input.lease) && row.state === "attached" && row.paymentMethod === null && input.paymentMethod !== null) {
            row.paymentMethod = input.paymentMethod
            record(row, now(), input.lease.worker, input.paymentIntentId)
          }
          return { _tag: "Attached" }
        }
        if (!owns(row, input.lease) || row.state !== "claimed" || row.generation !== input.generation) {
          return { _tag: "Lost", winnerId: row?.paymentIntentId ?? null }
        }
        row.paymentIntentId = input.paymentIntentId
        row.paymentMethod = input.paymentMethod
        move(row, "attached", input.lease.worker, input.paymentIntentId)
        return { _tag: "Attached" }
      }),
    settle,
    extend: (lease) =>
      Effect.sync(() => {
        const row = rows.get(lease.chargeKey)
        if (!holds(row, lease)) return false
        row.leaseUntilMs = Math.max(row.leaseUntilMs, now() + options.leaseMs)
        return true
      }),
    handBack: (lease, retryAfterMs, detail) =>
      Effect.sync(() => {
        const row = rows.get(lease.chargeKey)
        if (!holds(row, lease)) return false
        row.leaseUntilMs = now() + retryAfterMs
        record(row, now(), lease.worker, detail)
        return true
      }),
    renew: (input) =>
      Effect.sync(() => {
        const row = rows.get(input.lease.chargeKey)
        if (!owns(row, input.lease) || row.generation !== input.generation || row.paymentIntentId !== input.paymentIntentId) return false
        row.generation += 1
        row.paymentIntentId = null
        row.paymentMethod = row.chosenMethod ?? row.request.paymentMethod ?? null
        move(row, "claimed", input.lease.worker, `generation ${row.generation}`)
        return true
      }),
    quarantine: (lease, detail) =>
      Effect.sync(() => {
        const row = rows.get(lease.chargeKey)
        if (row === undefined || row.quarantine !== null) return
        row.quarantine = detail
        record(row, now(), lease.worker, `quarantined: ${detail}`)
      }),
    takeExpired: (worker, limit) =>
      Effect.sync(() =>
        [...rows.values()]
          .filter((row) => isHeld(row) && row.quarantine === null && row.leaseUntilMs <= now())
          .sort((a, b) => a.leaseUntilMs - b.leaseUntilMs)
          .slice(0, limit)
          .map((row) => takeOver(row, worker))
      ),
    takeWaiting: (chargeKey, worker) =>
      Effect.sync(() => {
        const row = rows.get(chargeKey)
        if (row === undefined || row.quarantine !== null || (row.state !== "processing" && row.state !== "requires_action")) return undefined
        if (row.state === "processing") return takeOver(row, worker)
        row.outcome = new Processing({ chargeKey, alreadySettled: true, paymentIntentId: row.paymentIntentId! })
        row.settledAtMs = null
        return take(row, worker, "processing", "its object has moved on")
      }),
    adopt: ({ paymentIntentId, paymentMethod, request, worker }) =>
      Effect.sync(() => {
        const { chargeKey } = request
        const found = rows.get(chargeKey)
        const before = revisedIdentity(request)
        const revises = before === undefined ? null : chargeKeyOf(before)
        // No other row bills the same one anew: its key would be this one.
        if (found === undefined && revises !== null && rows.get(revises)?.state !== "succeeded") return undefined
        const row = found ?? newRow(request, chargeKey, revises)
        const isFree = row.state === "planned" || row.state === "rejected" || row.state === "declined"
          || (row.state === "claimed" && row.leaseUntilMs <= now())
        const { amountMinor, currency, stripeCustomerId } = row.request
        const isSame = amountMinor === request.amountMinor && currency === request.currency && stripeCustomerId === request.stripeCustomerId
        if (!isFree || !isSame || row.paymentIntentId !== null || row.quarantine !== null) return undefined
        rows.set(chargeKey, row)
        if (row.state === "rejected" || row.state === "declined") row.attempt += 1
        row.paymentIntentId = paymentIntentId
        row.paymentMethod = paymentMethod
        row.outcome = new Processing({ chargeKey, alreadySettled: true, paymentIntentId })
        row.releaseDue = false
        row.dunningDue = false
        row.settledAtMs = null
        row.nextAttemptAtMs = null
        return { ...take(row, worker, "processing", `paid at the processor as ${paymentIntentId}`), resumed: true }
      }),
    page: (billingPeriod, afterKey, limit) =>
      Effect.sync(() => {
        const all = [...rows.values()]
        const from = afterKey === "" ? 0 : all.findIndex((row) => row.chargeKey === afterKey) + 1
        return afterKey !== "" && from === 0 ? [] : all.slice(from).filter((row) => row.request.billingPeriod === billingPeriod).slice(0, limit).map(snapshotOf)
      }),
    newestEventMs: Effect.sync(() => {
      let newest: number | undefined
      for (const { events } of rows.values()) for (const { atMs } of events) newest = Math.max(newest ?? atMs, atMs)
      return newest
    }),
    namespaces: (billingPeriod) =>
      Effect.sync(() => [...new Set([...rows.values()].map(({ request }) => request).filter((request) => request.billingPeriod === billingPeriod).map(({ namespace }) => namespace))]),
    releaseDue: (limit) =>
      Effect.sync(() =>
        [...rows.values()].filter((row) => row.releaseDue).slice(0, limit).map(({ attempt, chargeKey }) => ({ chargeKey, attempt }))
      ),
    markReleased: (chargeKey, attempt) =>
      Effect.sync(() => {
        const row = rows.get(chargeKey)
        if (row?.attempt === attempt) row.releaseDue = false
      }),
    reopen: ({ actor, attempt, chargeKeys, from, paymentMethod, reason }) =>
      Effect.sync(() => {
        let moved = 0
        for (const chargeKey of chargeKeys) {
          const row = rows.get(chargeKey)
          if (row === undefined || !isOneOf(from, row.state) || row.attempt !== (attempt ?? row.attempt)) continue
          row.attempt += 1
          row.epoch += 1
          row.chosenMethod = paymentMethod ?? row.chosenMethod
          row.paymentMethod = row.chosenMethod ?? row.request.paymentMethod ?? null
          row.nextAttemptAtMs = null
          row.outcome = null
          row.releaseDue = false
          row.dunningDue = false
          row.settledAtMs = null
          const method = paymentMethod === undefined ? "" : ` (with ${paymentMethod})`
          move(row, row.paymentIntentId === null ? "planned" : "attached", null, `reopened by ${actor}: ${reason}${method}`)
          moved += 1
        }
        return moved
      }),
    attemptsDue: (limit) =>
      Effect.sync(() =>
        [...rows.values()].filter((row) => row.nextAttemptAtMs !== null && row.nextAttemptAtMs <= now() && row.quarantine === null)
          .sort((a, b) => a.nextAttemptAtMs! - b.nextAttemptAtMs!)
          .slice(0, limit)
          .map(snapshotOf)
      ),
    find: (chargeKey) =>
      Effect.sync(() => {
        const row = rows.get(chargeKey)
        return row === undefined ? undefined : snapshotOf(row)
      }),
    events: (chargeKey) => Effect.sync(() => [...rows.get(chargeKey)?.events ?? []]),
    report: (billingPeriod) =>
      Effect.sync(() => {
        const totals = new Map<string, StateTotal>()
        for (const row of rows.values()) {
          if (billingPeriod !== undefined && row.request.billingPeriod !== billingPeriod) continue
          const key = JSON.stringify([row.request.billingPeriod, row.request.currency, row.state])
          const found = totals.get(key)
          totals.set(key, {
            billingPeriod: row.request.billingPeriod,
            currency: row.request.currency,
            state: row.state,
            charges: (found?.charges ?? 0) + 1,
            amountMinor: (found?.amountMinor ?? 0n) + BigInt(row.request.amountMinor),
            receivedMinor: (found?.receivedMinor ?? 0n)
              + BigInt(row.outcome?._tag === "Succeeded" ? row.outcome.amountReceivedMinor : 0),
            quarantined: (found?.quarantined ?? 0) + (row.quarantine === null ? 0 : 1)
          })
        }
        return [...totals.values()]
      })
  }
  memoryRows.set(service, rows)
  return service
})
