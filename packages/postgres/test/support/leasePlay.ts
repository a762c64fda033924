/** A play of chance over all that the ledger does, and the promise of the lease pages as the database sees it. */
import { assert } from "@effect/vitest"
import {
  Canceled, type ChargeOutcome, type ChargeRequest, type ClaimAnswer, type ClaimedCharge, Declined, Ledger, type LedgerError, Processing, Rejected, RequiresAction, RunLedger, Succeeded
} from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { type Duration, Effect, Layer, Random, type Scope } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import * as DatabaseClock from "../../src/DatabaseClock.ts"
import { endQuarantine } from "../../src/internal/attentionSql.ts"
import { turnPages } from "../../src/internal/leasePages.ts"
import { integer, text } from "../../src/internal/params.ts"
import { PgLedger } from "../../src/PgLedger.ts"

/** How long a claim holds in these tests: longer than any of them takes. */
export const lease = "10 minutes"
/** Of another process: calls of one process may share a statement. */
export const anotherLedger: Effect.Effect<Ledger["Service"], never, SqlClient.SqlClient | Scope.Scope> = Effect.flatMap(
  Layer.build(Layer.fresh(PgLedger.layerWith({ lease }))),
  (built) => Ledger.pipe(Effect.provide(built))
)

const keysOf = (statement: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.map(sql.unsafe<{ readonly charge_key: string }>(statement), (rows) => rows.map((row) => row.charge_key)))

/** The charges of which nobody would know when their lease has run out: there must be none. */
export const unpaged = keysOf(`select charge_key from purser.charges c where c.lease_until is not null
  and not exists (select 1 from purser.lease_pages p where c.charge_key = any(p.keys) and (p.ran_out or p.turn_at <= c.lease_until)) order by 1`)

/** The charges of which a list of the console would say something else than their state. */
export const misplaced = keysOf(`select charge_key from purser.charges
  where unpaid <> (state in ('declined', 'rejected', 'canceled', 'requires_action')) order by 1`)

/** The charges in pages, and in brackets those of pages whose time had come before. */
export const paged = keysOf(`select distinct case when p.ran_out then '(' || k || ')' else k end as charge_key from purser.lease_pages p, unnest(p.keys) k order by 1`)

/** The charges with a lease. */
export const leased = keysOf("select charge_key from purser.charges where lease_until is not null order by 1")

const common = ({ lease }: ClaimedCharge) => ({ chargeKey: lease.chargeKey, alreadySettled: false })
/** The object of a charge. */
export const idOf = ({ generation, lease }: ClaimedCharge) => `pi_${generation}_${lease.chargeKey.slice(0, 12)}`

/** Every outcome that a charge may have. */
export const outcomes = {
  succeeded: (charge: ClaimedCharge) => new Succeeded({ ...common(charge), paymentIntentId: idOf(charge), chargeId: "ch_1", amountReceivedMinor: 1000 }),
  processing: (charge: ClaimedCharge) => new Processing({ ...common(charge), paymentIntentId: idOf(charge) }),
  declined: (charge: ClaimedCharge) =>
    new Declined({ ...common(charge), paymentIntentId: idOf(charge), code: "card_declined", declineCode: null, adviceCode: null, declinedChargeId: null, detail: "no" }),
  rejected: (charge: ClaimedCharge) => new Rejected({ ...common(charge), code: "cap_exceeded", detail: "no room" }),
  requiresAction: (charge: ClaimedCharge) => new RequiresAction({ ...common(charge), paymentIntentId: idOf(charge), declinedChargeId: null, detail: "3DS" }),
  canceled: (charge: ClaimedCharge) => new Canceled({ ...common(charge), paymentIntentId: idOf(charge), detail: "by hand" })
}

/** Records an outcome; what is processing is looked at again after so long. */
export const settle = (ledger: Ledger["Service"], charge: ClaimedCharge, outcome: (charge: ClaimedCharge) => ChargeOutcome, pollAfterMs = 0) =>
  ledger.settle({ lease: charge.lease, attempt: charge.attempt, paymentIntentId: idOf(charge), outcome: outcome(charge), pollAfterMs })

/** Ties its object to a charge. */
export const attach = (ledger: Ledger["Service"], charge: ClaimedCharge) =>
  ledger.attach({ lease: charge.lease, generation: charge.generation, paymentIntentId: idOf(charge), paymentMethod: "pm_card_visa" })

/** What a person does to a charge that was put aside. */
export const endAside = (chargeKey: string) => Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(endQuarantine, [text(chargeKey), text("ada"), text("checked")]))

const oneOf = <A>(from: ReadonlyArray<A>): Effect.Effect<A> => Effect.orDie(Random.choice(from))

type Act = Effect.Effect<unknown, LedgerError | SqlError.SqlError, SqlClient.SqlClient>

const acts = [
  "claim", "claim", "claim", "claimWithObject", "attach", "attach", "paid", "paid", "otherwise", "processing", "extend", "handBack", "aside", "endAside", "reopen", "renew",
  "waiting", "adopt", "sweep", "sweep", "turn", "turn"
] as const
const moves: ReadonlyArray<Duration.Input> = ["1 second", "3 seconds", "6 seconds", "1 minute", "11 minutes", "3 hours"]
const spans = [0, 1000, 4000, 60_000, 3 * 3_600_000]

/**
 * So many steps, each of up to `atOnce` acts together, with the promise looked at after each; then all leases run out, and two sweepers
 * take up what is open, each charge once.
 */
export const play = Effect.fnUntraced(function*(name: string, steps: number, atOnce: number) {
  const ledgers = [yield* anotherLedger, yield* anotherLedger]
  const book = yield* RunLedger
  const sql = yield* SqlClient.SqlClient
  const said: Array<string> = []
  const held: Array<ClaimedCharge> = []
  const given = new Set<string>()
  const give = (charge: ClaimedCharge) => {
    const { chargeKey, epoch } = charge.lease
    assert.isFalse(given.has(`${chargeKey} ${epoch}`), `${chargeKey} was given twice at epoch ${epoch}: ${said.join(", ")}`)
    given.add(`${chargeKey} ${epoch}`)
    held.push(charge)
  }
  const requests: Array<ChargeRequest> = ["a", "b", "c"].map((customer) => chargeFor(`${name}-${customer}`, "2026-11"))
  yield* book.begin({ runId: name, source: "a.csv" })
  yield* book.stage(name, requests.map((request, index) => ({ line: index + 2, chargeKey: request.chargeKey, request })))
  yield* book.plan(name)

  /** A request of before, or now and then one that nobody has seen. */
  const anyRequest = Effect.gen(function*() {
    if ((yield* Random.next) < 0.8) return yield* oneOf(requests.slice(-8))
    const request = chargeFor(`${name}-${requests.length}`, "2026-11")
    requests.push(request)
    return request
  })
  /** One of the latest that were given to somebody, who may have lost it since. */
  const anyHeld = Effect.suspend(() => held.length === 0 ? Effect.undefined : oneOf(held.slice(-8)))

  /** What is chosen is chosen now; what is done is done later, perhaps together with other acts. */
  const choose = Effect.gen(function*() {
    const choice = {
      act: yield* oneOf(acts),
      ledger: yield* oneOf(ledgers),
      request: yield* anyRequest,
      charge: yield* anyHeld,
      outcome: yield* oneOf([outcomes.declined, outcomes.rejected, outcomes.requiresAction, outcomes.canceled]),
      ms: yield* oneOf(spans),
      limit: yield* Random.nextIntBetween(1, 3)
    }
    said.push(`${choice.act} ${choice.request.customerId} ${choice.charge?.request.customerId ?? ""} ${choice.charge?.lease.epoch ?? ""} ${choice.ms}`)
    return choice
  })
  const claimed = (answer: ClaimAnswer) => Effect.sync(() => answer._tag === "Claimed" ? give(answer.charge) : undefined)
  const taken = (charge: ClaimedCharge | undefined) => Effect.sync(() => charge === undefined ? undefined : give(charge))
  const perform = ({ act, charge, ledger, limit, ms, outcome, request }: Effect.Success<typeof choose>): Act => {
    switch (act) {
      case "claim":
        return Effect.flatMap(ledger.claim(request, "w"), claimed)
      case "claimWithObject":
        return Effect.flatMap(ledger.claim(request, "w", { object: { id: `pi_of_${request.customerId}`, paymentMethod: "pm_card_visa" } }), claimed)
      case "sweep":
        return Effect.tap(ledger.takeExpired("s", limit), (charges) => Effect.sync(() => charges.forEach(give)))
      case "turn":
        return sql.unsafe(turnPages, [integer(limit)])
      case "adopt":
        return Effect.flatMap(ledger.adopt({ request, paymentIntentId: `pi_of_${request.customerId}`, paymentMethod: null, worker: "r" }), taken)
    }
    if (charge === undefined) return Effect.void
    const { chargeKey } = charge.lease
    switch (act) {
      case "attach":
        return attach(ledger, charge)
      case "paid":
        return settle(ledger, charge, outcomes.succeeded)
      case "processing":
        return settle(ledger, charge, outcomes.processing, ms)
      case "otherwise":
        return settle(ledger, charge, outcome)
      case "extend":
        return ledger.extend(charge.lease)
      case "handBack":
        return ledger.handBack(charge.lease, ms, "later")
      case "aside":
        return ledger.quarantine(charge.lease, "differs")
      case "endAside":
        return endAside(chargeKey)
      case "reopen":
        return ledger.reopen({ chargeKeys: [chargeKey], from: ["declined", "rejected", "requires_action"], actor: "ada", reason: "again" })
      case "renew":
        return ledger.renew({ lease: charge.lease, generation: charge.generation, paymentIntentId: idOf(charge) })
      case "waiting":
        return Effect.flatMap(ledger.takeWaiting(chargeKey, "w"), taken)
    }
  }

  for (let step = 0; step < steps; step++) {
    if (step % 4 === 3) {
      const move = yield* oneOf(moves)
      said.push(String(move))
      yield* DatabaseClock.advance(move)
    }
    const chosen = yield* Effect.forEach(Array.from({ length: yield* Random.nextIntBetween(1, atOnce) }), () => choose)
    yield* Effect.forEach(chosen, perform, { concurrency: "unbounded", discard: true })
    for (const wrong of [unpaged, misplaced]) assert.deepStrictEqual(yield* wrong, [], said.join(", "))
  }

  const last = chargeFor(`${name}-last`, "2026-11")
  yield* ledgers[0]!.claim(last, "w")
  yield* DatabaseClock.advance("4 hours")
  const open = yield* leased
  assert.include(open, last.chargeKey)
  const takenUp: Array<ClaimedCharge> = []
  for (;;) {
    const [here, there] = yield* Effect.forEach(ledgers, (ledger) => ledger.takeExpired("s", 2), { concurrency: "unbounded" })
    const both = [...here!, ...there!]
    both.forEach(give)
    takenUp.push(...both)
    if (both.length === 0) break
  }
  assert.deepStrictEqual(takenUp.map((charge) => charge.lease.chargeKey).toSorted(), open, said.join(", "))
  yield* DatabaseClock.advance("1 minute")
  assert.deepStrictEqual(yield* ledgers[0]!.takeExpired("s", 2), [])
  assert.deepStrictEqual(yield* paged, open, said.join(", "))
  // Nothing of this is in the way of what comes next.
  yield* Effect.forEach(takenUp, (charge) => ledgers[0]!.quarantine(charge.lease, "played"), { discard: true })
})
