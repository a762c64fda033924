/**
 * The ledger alone: `side.ts PROGRAM COUNT RUN DATABASE_URL` claims as many charges as told, and settles them. `purser` asks
 * through the contract, fiber by fiber; `pre-built` sends batches of 256 rows that were written before the clock began, the
 * same rows and lines of trail, without any look at what is there.
 */
import { type ClaimAnswer, Ledger, Succeeded } from "@purser/core"
import { Database, Migrations, PgLedger } from "@purser/postgres"
import { chargeFor } from "@purser/testkit/chargeFor"
import { Effect, Layer, ManagedRuntime, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import pg from "pg"
import { inLoops } from "../support/loops.ts"
import { heard, say, timed, type Worked } from "../support/side.ts"
import { tellCounts } from "../support/statements.ts"

const [program, countText, run, databaseUrl] = process.argv.slice(2) as [string, string, string, string]
const count = Number(countText)
const batchOf = 256
/** Calls under way: a full batch on its way, and one that gathers. */
const callers = 1024

const objectOf = (chargeKey: string) => `pi_${chargeKey}`

interface Ready {
  readonly claim: () => Promise<unknown>
  /** Between the two that are measured: each charge comes to name its object. */
  readonly attach: () => Promise<unknown>
  readonly settle: () => Promise<unknown>
}

interface Opened {
  readonly prepare: (name: string, many: number) => Ready
  /** All connections tell the server their fsyncs: they would do it a second later. */
  readonly tell: () => Promise<unknown>
}

const requestsOf = (name: string, many: number) => Array.from({ length: many }, (_, index) => chargeFor(`${run}${name}${index}`, "2026-07", { amountMinor: 1000 + index % 9000, allowFuture: false }))

const openOurs = async (): Promise<Opened> => {
  const runtime = ManagedRuntime.make(PgLedger.layer.pipe(Layer.provideMerge(Layer.provideMerge(Migrations.layer, Database.layerUrl(Redacted.make(databaseUrl))))))
  const ledger = await runtime.runPromise(Ledger)
  // As many at once as the pool has connections at the most, each long enough that none of them has two.
  const tell = () =>
    runtime.runPromise(Effect.flatMap(SqlClient.SqlClient, (sql) =>
      Effect.all(Array.from({ length: 10 }, () => sql.unsafe(`${tellCounts}, pg_sleep(0.1)`)), { concurrency: "unbounded", discard: true })))
  const prepare = (name: string, many: number): Ready => {
    const requests = requestsOf(name, many)
    const claims: Array<ClaimAnswer> = []
    const all = (call: (index: number) => Effect.Effect<unknown, unknown>) => runtime.runPromise(inLoops(many, callers, call))
    return {
      claim: () => all((index) => Effect.map(ledger.claim(requests[index]!, "bench"), (claim) => claims[index] = claim)),
      attach: () =>
        all((index) => {
          const claim = claims[index]!
          if (claim._tag !== "Claimed") return Effect.die(new Error(claim._tag))
          const { generation, lease, paymentMethod } = claim.charge
          return ledger.attach({ lease, generation, paymentIntentId: objectOf(lease.chargeKey), paymentMethod })
        }),
      settle: () =>
        all((index) => {
          const claim = claims[index]!
          if (claim._tag !== "Claimed") return Effect.die(new Error(claim._tag))
          const { chargeKey } = requests[index]!
          return ledger.settle({
            lease: claim.charge.lease,
            attempt: claim.charge.attempt,
            paymentIntentId: objectOf(chargeKey),
            outcome: new Succeeded({ chargeKey, alreadySettled: false, paymentIntentId: objectOf(chargeKey), chargeId: `ch_${chargeKey}`, amountReceivedMinor: requests[index]!.amountMinor })
          })
        })
    }
  }
  return { prepare, tell }
}

/** The page of the trail of a batch. */
const page = "ep as materialized (select purser.next_event_page() as page)"
const lines = (from: string, to: string, rows: string, detail = "null") =>
  `insert into purser.charge_event_pages (page, at, keys, seqs, from_states, to_states, workers, attempts, details)
  select (select page from ep), now(), array_agg(charge_key), array[max(event_seq)], ${from}, array['${to}'], array['bench'], array[1], ${detail} from ${rows}`
const claimRows = `with ${page}, n as (
  insert into purser.charges (charge_key, namespace, customer_id, billing_period, amount_minor, currency, stripe_customer_id, payment_method, state,
    lease_worker, lease_epoch, lease_until, first_claimed_at, planned_at, updated_at, event_pages)
  select *, 'claimed', 'bench', 1, now() + interval '15 seconds', now(), now(), now(), array[(select page from ep)]
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::text[]) returning charge_key, event_seq, lease_epoch, attempt
), e as (${lines("null", "claimed", "n")})
select * from n`
const attachRows = `with ${page}, u as (
  update purser.charges c set state = 'attached', payment_intent_id = i.intent, event_seq = c.event_seq + 1, event_pages = c.event_pages || (select page from ep), updated_at = now()
  from unnest($1::text[], $2::text[]) as i(key, intent) where c.charge_key = i.key returning c.charge_key, c.event_seq, c.attempt, c.payment_intent_id
)
${lines("array['claimed']", "attached", "u", "array_agg(payment_intent_id)")}`
const settleRows = `with ${page}, u as (
  update purser.charges c set state = 'succeeded', outcome_payment_intent_id = i.intent, charge_id = i.charge, received_minor = c.amount_minor, lease_until = null,
    settled_at = now(), event_seq = c.event_seq + 1, event_pages = c.event_pages || (select page from ep), updated_at = now()
  from unnest($1::text[], $2::text[], $3::text[]) as i(key, intent, charge) where c.charge_key = i.key returning c.charge_key, c.event_seq, c.attempt
), e as (${lines("array['attached']", "succeeded", "u")})
select * from u`

const openPrebuilt = async (): Promise<Opened> => {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  const list = (texts: ReadonlyArray<string | number>) => `{${texts.join(",")}}`
  const prepare = (name: string, many: number): Ready => {
    const requests = requestsOf(name, many)
    const batches = Array.from({ length: Math.ceil(many / batchOf) }, (_, index) => requests.slice(index * batchOf, (index + 1) * batchOf))
    const keys = batches.map((batch) => list(batch.map(({ chargeKey }) => chargeKey)))
    const claims = batches.map((batch, index) => [
      keys[index], list(batch.map((one) => one.namespace)), list(batch.map((one) => one.customerId)), list(batch.map((one) => one.billingPeriod)), list(batch.map((one) => one.amountMinor)),
      list(batch.map((one) => one.currency)), list(batch.map((one) => one.stripeCustomerId)), list(batch.map((one) => one.paymentMethod!))
    ])
    const attaches = batches.map((batch, index) => [keys[index], list(batch.map(({ chargeKey }) => objectOf(chargeKey)))])
    const settles = batches.map((batch, index) => [keys[index], list(batch.map(({ chargeKey }) => objectOf(chargeKey))), list(batch.map(({ chargeKey }) => `ch_${chargeKey}`))])
    const each = async (name: string, text: string, values: ReadonlyArray<ReadonlyArray<unknown>>) => {
      for (const one of values) await client.query({ name, text, values: [...one] })
    }
    return { claim: () => each("claim", claimRows, claims), attach: () => each("attach", attachRows, attaches), settle: () => each("settle", settleRows, settles) }
  }
  return { prepare, tell: () => client.query(tellCounts) }
}

const { prepare, tell } = await (program === "purser" ? openOurs() : openPrebuilt())
const warm = prepare("w", Math.ceil(count / 2))
await warm.claim()
await warm.attach()
await warm.settle()
const measured = prepare("m", count)
for (const step of ["claim", "settle"] as const) {
  if (step === "settle") await measured.attach()
  await tell()
  say("ready")
  await heard()
  const worked: Worked = await timed(count, measured[step])
  await tell()
  say(worked)
}
await heard()
process.exit(0)
