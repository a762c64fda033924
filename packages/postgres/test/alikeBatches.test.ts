/** Claims and payments of one batch that are alike but for one thing: each says of itself what its own request says. */
import { assert, layer } from "@effect/vitest"
import { type ChargeRequest, type ClaimExtras, Ledger, Principal, RunLedger, SpendCap, Succeeded } from "@purser/core"
import { chargeFor, type ChargeForOptions } from "@purser/testkit/chargeFor"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { PgLedger } from "../src/PgLedger.ts"
import { PgRunLedger } from "../src/PgRunLedger.ts"
import { PgSpendCap } from "../src/PgSpendCap.ts"
import * as TestDatabase from "../src/TestDatabase.ts"

interface Claim {
  readonly period?: string
  readonly options?: ChargeForOptions
  readonly worker?: string
  readonly principal?: string
  /** Attached with the claim. */
  readonly object?: boolean
  readonly room?: boolean
}

/** What two claims of a batch differ in: the second has it, the first has the usual. */
const differences: Readonly<Record<string, Claim>> = {
  nothing: {},
  namespace: { options: { namespace: "other" } },
  period: { period: "2026-10" },
  currency: { options: { currency: "eur" } },
  "allowed to be of a later period": { options: { allowFuture: true } },
  worker: { worker: "w2" },
  principal: { principal: "ben" },
  object: { object: true },
  room: { room: false },
  method: { options: { paymentMethod: null } },
  item: { options: { item: "seat-1" } }
}

const requestOf = (name: string, { options = {}, period = "2026-09" }: Claim) => chargeFor(name, period, { allowFuture: false, namespace: "usual", ...options })
const objectOf = ({ chargeKey }: ChargeRequest) => `one:${chargeKey}`
const extrasOf = (request: ChargeRequest, { object = false, room = true }: Claim): ClaimExtras =>
  ({ room, ...object ? { object: { id: objectOf(request), paymentMethod: "pm_card_visa" } } : {} })
const openCap = ({ billingPeriod, currency, namespace }: ChargeRequest) =>
  Effect.flatMap(SpendCap, (cap) => cap.open({ namespace, billingPeriod, currency, expectedMinor: 1_000_000n, headroomPercent: 100 }))

/** By a process that has had no other claims: those of one moment are one batch. */
const together = <A, E, R>(acts: ReadonlyArray<Effect.Effect<A, E, R | Ledger>>) => Effect.all(acts, { concurrency: "unbounded" }).pipe(Effect.provide(Layer.fresh(PgLedger.layer)))

const claimOf = (request: ChargeRequest, claim: Claim) =>
  Effect.provideService(Effect.flatMap(Ledger, (ledger) => ledger.claim(request, claim.worker ?? "w1", extrasOf(request, claim))), Principal, claim.principal ?? "ann")

/** What is written of a charge. */
const written = Effect.fnUntraced(function*({ chargeKey }: ChargeRequest) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql.unsafe(`select namespace, billing_period, currency, item, payment_method, allow_future, lease_worker, state, payment_intent_id,
    (select array_agg(h.namespace || ' ' || h.billing_period || ' ' || h.currency) from purser.held_room h where h.charge_key = c.charge_key) as held from purser.charges c where charge_key = $1`, [chargeKey])
  const events = yield* Effect.flatMap(Ledger, (ledger) => ledger.events(chargeKey))
  return { ...row, events: events.map(({ principal, to, worker }) => `${to} ${worker} ${principal}`) }
})
const expected = (request: ChargeRequest, claim: Claim, hasRoom: boolean) => {
  const { object = false, principal = "ann", worker = "w1" } = claim
  const { billingPeriod, currency, namespace } = request
  const state = object ? "attached" : "claimed"
  return {
    namespace, billing_period: billingPeriod, currency, item: request.item ?? null, payment_method: request.paymentMethod ?? null, allow_future: request.allowFuture === true,
    lease_worker: worker, state, payment_intent_id: object ? objectOf(request) : null, held: hasRoom ? [`${namespace} ${billingPeriod} ${currency}`] : null, events: [`${state} ${worker} ${principal}`]
  }
}

for (const [name, database] of TestDatabase.layers) {
  layer(Layer.provideMerge(Layer.mergeAll(PgLedger.layer, PgSpendCap.layer, PgRunLedger.layer), database), { timeout: 60_000, excludeTestServices: true })(`batches on ${name}`, (it) => {
    for (const [what, second] of Object.entries(differences)) {
      for (const planned of [false, true]) {
        it.effect(`two ${planned ? "planned" : "new"} charges that differ in ${what}`, () =>
          Effect.gen(function*() {
            const claims = [{}, second].map((claim: Claim, index) => ({ claim, request: requestOf(`${what}-${planned}-${index}`, claim) }))
            yield* Effect.forEach(claims, ({ request }) => openCap(request), { discard: true })
            if (planned) {
              const runs = yield* RunLedger
              yield* runs.begin({ runId: what, source: "test" })
              yield* runs.stage(what, claims.map(({ request }, index) => ({ line: index + 1, chargeKey: request.chargeKey, request })))
              yield* runs.plan(what)
            }
            const answers = yield* together(claims.map(({ claim, request }) => claimOf(request, claim)))
            for (const [index, { claim, request }] of claims.entries()) {
              // Room is taken where all of a batch want it.
              const hasRoom = second.room !== false
              const answer = answers[index]!
              assert.deepStrictEqual(answer._tag === "Claimed" && [answer.charge.lease.worker, answer.charge.state, answer.hasRoom], [claim.worker ?? "w1", claim.object === true ? "attached" : "claimed", hasRoom])
              const { events, ...row } = expected(request, claim, hasRoom)
              assert.deepStrictEqual(yield* written(request), { ...row, events: [...planned ? ["planned null null"] : [], ...events] })
            }
          }))
      }
    }

    for (const [what, claim] of Object.entries(differences)) {
      it.effect(`a new charge that is alone${what === "nothing" ? "" : `, with another ${what}`}`, () =>
        Effect.gen(function*() {
          const request = requestOf(`alone-${what}`, claim)
          yield* openCap(request)
          const [answer] = yield* together([claimOf(request, claim)])
          assert.deepStrictEqual(answer!._tag === "Claimed" && [answer!.charge.state, answer!.hasRoom], [claim.object === true ? "attached" : "claimed", claim.room !== false])
          assert.deepStrictEqual(yield* written(request), expected(request, claim, claim.room !== false))
        }))
    }

    it.effect("payments of two workers", () =>
      Effect.gen(function*() {
        const claims = ["w1", "w2"].map((worker) => ({ worker, request: requestOf(`paid-by-${worker}`, {}) }))
        yield* openCap(claims[0]!.request)
        const answers = yield* together(claims.map(({ request, worker }) => claimOf(request, { worker, object: true })))
        const settled = yield* together(answers.map((answer, index) => {
          const { request } = claims[index]!
          if (answer._tag !== "Claimed") return Effect.die(new Error(answer._tag))
          const outcome = new Succeeded({ chargeKey: request.chargeKey, alreadySettled: false, paymentIntentId: objectOf(request), chargeId: `ch_${index}`, amountReceivedMinor: request.amountMinor })
          return Effect.flatMap(Ledger, (ledger) => ledger.settle({ lease: answer.charge.lease, attempt: 1, paymentIntentId: objectOf(request), outcome }))
        }))
        assert.deepStrictEqual(settled.map(({ _tag }) => _tag), ["Settled", "Settled"])
        for (const { request, worker } of claims) assert.deepStrictEqual((yield* written(request)).events, [`attached ${worker} ann`, `succeeded ${worker} null`])
      }))

    for (const planned of ["none", "all", "the others"] as const) {
      for (const room of [true, false]) {
        it.effect(`a value that the database refuses fails its own claim alone, where ${planned} of its batch ${planned === "the others" ? "are" : "is"} planned${room ? " and room is taken" : ""}`, () =>
          Effect.gen(function*() {
            const [cap, runs, sql] = [yield* SpendCap, yield* RunLedger, yield* SqlClient.SqlClient]
            const scope = `refused-${planned}-${room}`
            const requests = Array.from({ length: 9 }, (_, index) => requestOf(`${scope}-${index}`, { options: { namespace: scope } }))
            const bad = requests[4]!
            yield* openCap(bad)
            const inRun = planned === "all" ? requests : planned === "none" ? [] : requests.filter((request) => request !== bad)
            yield* runs.begin({ runId: scope, source: "test" })
            yield* runs.stage(scope, inRun.map((request, index) => ({ line: index + 1, chargeKey: request.chargeKey, request })))
            yield* runs.plan(scope)
            yield* sql.unsafe(`create function purser.refuse_one() returns trigger language plpgsql as $$ begin
              if new.charge_key = '${bad.chargeKey}' then raise exception 'refused' using errcode = '22P02'; end if; return new; end $$`)
            yield* sql.unsafe("create trigger refuse_one before insert or update on purser.charges for each row execute function purser.refuse_one()")
            const answers = yield* Effect.ensuring(
              together(requests.map((request) => Effect.match(claimOf(request, { room }), { onFailure: ({ reason }) => reason._tag, onSuccess: (answer) => answer._tag === "Claimed" ? "Claimed" : answer._tag }))),
              Effect.orDie(sql.unsafe("drop function purser.refuse_one cascade"))
            )
            assert.deepStrictEqual(answers, requests.map((request) => request === bad ? "LedgerUnavailable" : "Claimed"))
            const report = (yield* cap.report(bad.billingPeriod)).find(({ namespace }) => namespace === scope)!
            const held = yield* sql.unsafe<{ readonly charge_key: string }>("select charge_key from purser.held_room where namespace = $1", [scope])
            assert.strictEqual(report.reservations, held.length)
            assert.isTrue(held.every((row) => row.charge_key !== bad.chargeKey))
          }))
      }
    }

    it.effect("a cap that is nearly as wide as a number can be is full, and nothing overflows", () =>
      Effect.gen(function*() {
        const [cap, sql] = [yield* SpendCap, yield* SqlClient.SqlClient]
        const most = 2n ** 63n - 1n
        const requests = [1, 2].map((number) => requestOf(`wide-${number}`, { options: { namespace: "wide" } }))
        const { billingPeriod, currency, namespace } = requests[0]!
        yield* cap.open({ namespace, billingPeriod, currency, expectedMinor: most, headroomPercent: 100 })
        yield* sql.unsafe("update purser.caps set reserved_minor = cap_minor - 999 where namespace = 'wide'")
        const answers = yield* together([claimOf(requests[0]!, {}), claimOf(requests[1]!, { worker: "w2" }), claimOf(requestOf("wide-3", { options: { namespace: "wide" } }), {})])
        assert.deepStrictEqual(answers.map((answer) => answer._tag === "Claimed" && answer.hasRoom), [false, false, false])
        const alone = yield* together([claimOf(requestOf("wide-4", { options: { namespace: "wide" } }), {})])
        assert.deepStrictEqual(alone.map((answer) => answer._tag === "Claimed" && answer.hasRoom), [false])
        const wishes = requests.map((request) => Effect.flip(cap.reserve({ ...request, chargeKey: request.chargeKey, attempt: 1, amountMinor: request.amountMinor })))
        assert.deepStrictEqual((yield* Effect.all(wishes, { concurrency: "unbounded" })).map(({ reason }) => reason._tag), ["CapExceeded", "CapExceeded"])
      }))
  })
}
