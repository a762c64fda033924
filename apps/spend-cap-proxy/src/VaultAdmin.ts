/**
 * What people do with vaults: make, list, revoke, raise, switch off, and read the audit trail. Each act writes its own
 * line of the trail in the same statement as the change.
 */
import { capOf } from "@purser/core"
import { Context, Effect, Layer, type Redacted, Result, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { rowsOf, unavailable } from "./internal/vaultQuery.ts"
import { allowPattern, defaultAllow } from "./RoutePolicy.ts"
import { AuditLine, type NewKey, type NewVault, Vault } from "./Vault.ts"
import { hashVaultKey, makeVaultId, makeVaultKey } from "./VaultKey.ts"
import { VaultMissing, VaultRefused, VaultStoreError } from "./VaultStoreError.ts"

const ms = (column: string) => `floor(extract(epoch from ${column}) * 1000)::float8`
/** The keys are looked up by a statement that sees what was there before its own changes, unless they are given. */
const columnsWith = (keys: string) => `id, (${keys}) as keys, separate, name, billing_period as "billingPeriod", currency, expected_minor::float8 as "expectedMinor",
  headroom_percent as "headroomPercent", cap_minor::float8 as "capMinor", held_minor::float8 as "heldMinor", paid_minor::float8 as "paidMinor",
  refunded_minor::float8 as "refundedMinor", payments::float8 as payments, calls::float8 as calls, max_calls::float8 as "maxCalls",
  max_per_charge_minor::float8 as "maxPerChargeMinor", allow, customers, duplicate_guard as "duplicateGuard",
  ${ms("created_at")} as "createdAtMs", (select killed from purser.kill_switch) as killed`

const keysFrom = (table: string, of: string) => `select coalesce(jsonb_agg(jsonb_build_object('hint', y.hint, 'expiresAtMs', ${ms("y.expires_at")},
  'revokedAtMs', ${ms("y.revoked_at")}, 'createdAtMs', ${ms("y.created_at")}) order by y.created_at, y.key_hash), '[]'::jsonb) from ${table} y where y.vault_id = ${of}.id`

const columns = (of: string) => columnsWith(keysFrom("purser.vault_keys", of))

const event = (act: string, from: string, detail: string) =>
  `insert into purser.audit (at, vault_id, act, verdict, currency, amount_minor, detail)
  select purser.now(), id, '${act}', '${act}', currency, cap_minor, ${detail} from ${from}`

const createSql = `with n as (
  insert into purser.vaults (id, separate, name, billing_period, currency, expected_minor, headroom_percent, cap_minor, max_calls,
    max_per_charge_minor, allow, allow_pattern, customers, duplicate_guard, created_at)
  select $1::text, x."separateReason" is not null, x.name, x."billingPeriod", x.currency, x."expectedMinor", x."headroomPercent", $4::text::bigint, x."maxCalls",
    x."maxPerChargeMinor", x.allow, x.patterns, x.customers, x."duplicateGuard", purser.now()
  from jsonb_to_record($5::text::jsonb) as x(name text, "billingPeriod" text, currency text, "expectedMinor" bigint, "headroomPercent" integer,
    "maxCalls" bigint, "maxPerChargeMinor" bigint, allow text[], patterns text[], customers text[], "duplicateGuard" boolean, "separateReason" text)
  on conflict (billing_period, currency) where not separate do nothing
  returning *
), k as (
  insert into purser.vault_keys (key_hash, vault_id, hint, expires_at, created_at)
  select $2::text, id, $3::text, to_timestamp(($5::text::jsonb ->> 'expiresAtMs')::float8 / 1000.0), created_at from n returning *
), e as (${event("created", "n", "$5::text::jsonb ->> 'separateReason'")})
select ${columnsWith(keysFrom("k", "n"))} from n`

const taken = `select id from purser.vaults where billing_period = $1::text and currency = $2::text and not separate`

// Keys of a vault are changed while its row is held, so that no decision is half way.
const holdSql = `v as (select * from purser.vaults where id = $1::text for update)`

const revokeSql = `with ${holdSql},
  u as (update purser.vault_keys y set revoked_at = purser.now() from v where y.vault_id = v.id and y.revoked_at is null returning y.*),
  e as (${event("revoked", "v", "$2::text")})
select ${columnsWith(keysFrom("(select * from u union all select * from purser.vault_keys z where z.key_hash not in (select key_hash from u))", "v"))} from v`

const addKeySql = `with ${holdSql},
  u as (update purser.vault_keys y set revoked_at = purser.now() from v where y.vault_id = v.id and y.revoked_at is null and $5::text::boolean returning y.*),
  k as (insert into purser.vault_keys (key_hash, vault_id, hint, expires_at, created_at)
    select $2::text, id, $3::text, to_timestamp($4::text::float8 / 1000.0), purser.now() from v returning *),
  e as (${event("key added", "v", "$6::text || case when $5::text::boolean then ' (the others were revoked)' else '' end")})
select ${columnsWith(keysFrom("(select * from k union all select * from u union all select * from purser.vault_keys z where z.key_hash not in (select key_hash from u))", "v"))} from v`

const raiseSql = `with ${holdSql}, n as (
  select $2::text::bigint as expected, coalesce($3::text::integer, v.headroom_percent) as headroom, v.cap_minor as was from v
), u as (
  update purser.vaults w set expected_minor = n.expected, headroom_percent = n.headroom, cap_minor = n.expected * n.headroom / 100 from n
  where w.id = $1::text and n.expected * n.headroom / 100 >= w.held_minor + w.paid_minor returning w.*
), e as (${event("raised", "u", "$4::text || ' (the cap was ' || (select was from n) || ', in minor units)'")})
select ${columns("u")} from u`

const releaseSql = `with ${holdSql}, u as (
  update purser.holds h set state = 'released', request_body = null, answer = null from v
  where h.vault_id = v.id and h.customer = $2::text and h.state = 'held' returning h.*
), s as (update purser.calls c set stopped = true from u where c.vault_id = u.vault_id and c.hold_id = u.id),
t as (select vault_id, sum(amount_minor)::bigint as amount from u group by vault_id),
w as (update purser.vaults x set held_minor = x.held_minor - t.amount from t where x.id = t.vault_id returning x.*),
e as (insert into purser.audit (at, vault_id, act, verdict, currency, amount_minor, customer, idempotency_key, detail)
  select purser.now(), u.vault_id, 'released', 'released', w.currency, u.amount_minor, u.customer, u.first_key, $3::text from u, w)
select ${columns("w")} from w`

const killSql = `with w as (select killed from purser.kill_switch),
  u as (update purser.kill_switch set killed = $1::text::boolean, reason = $2::text, at = purser.now() returning *),
  e as (insert into purser.audit (at, act, verdict, detail) select at, case when killed then 'killed' else 'unkilled' end,
    case when killed then 'killed' else 'unkilled' end, reason from u)
select u.killed <> w.killed as changed from u, w`

const logSql = `select seq::float8 as seq, ${ms("at")} as "atMs", vault_id as vault, act, decision::float8 as decision, method, path,
  amount_minor::float8 as "amountMinor", currency, customer, idempotency_key as "idempotencyKey", verdict, code, status, request_id as "requestId", detail
from purser.audit where seq > $1::text::bigint and ($2::text = '' or vault_id = $2::text) order by seq limit $3::text::integer`

const lastSql = `select coalesce(min(seq), 1)::float8 - 1 as seq from
  (select seq from purser.audit where $1::text = '' or vault_id = $1::text order by seq desc limit $2::text::integer) x`

const fail = (reason: VaultStoreError["reason"]) => Effect.fail(new VaultStoreError({ reason }))
const refused = (detail: string) => fail(new VaultRefused({ detail }))

const safe = (value: number) => Number.isSafeInteger(value) && value > 0

const problemOf = (vault: NewVault): string | undefined => {
  if (!safe(vault.expectedMinor)) return "the expected total must be more than zero"
  if (vault.headroomPercent < 100 || vault.headroomPercent > 200) return "the headroom must be from 1.00 to 2.00"
  if (vault.maxPerChargeMinor !== null && !safe(vault.maxPerChargeMinor)) return "the largest charge must be more than zero"
  if (vault.maxCalls !== null && !safe(vault.maxCalls)) return "the number of calls must be more than zero"
  if (vault.customers?.length === 0) return "a list of customers without a customer allows nothing"
}

const make = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const vaultRows = rowsOf(sql, Vault)
  const lines = rowsOf(sql, AuditLine)
  const vaults = (operation: string, statement: string, params: ReadonlyArray<unknown>) => Effect.mapError(vaultRows(statement, params), unavailable(operation))
  const one = (id: string, found: ReadonlyArray<Vault>) =>
    found[0] === undefined ? fail(new VaultMissing({ vault: id })) : Effect.succeed(found[0])

  return VaultAdmin.of({
    create: Effect.fnUntraced(function*(given) {
      const problem = problemOf(given)
      if (problem !== undefined) return yield* refused(problem)
      const allow = given.allow.length === 0 ? defaultAllow : given.allow
      const patterns: Array<string> = []
      for (const entry of allow) {
        const pattern = allowPattern(entry)
        if (Result.isFailure(pattern)) return yield* refused(pattern.failure)
        patterns.push(pattern.success)
      }
      const { hint, key } = makeVaultKey()
      const id = makeVaultId()
      const cap = String(capOf(BigInt(given.expectedMinor), given.headroomPercent))
      const found = yield* vaults("create", createSql, [id, hashVaultKey(key), hint, cap, JSON.stringify({ ...given, allow, patterns })])
      if (found[0] !== undefined) return { key, vault: found[0] }
      const [other] = yield* Effect.mapError(
        rowsOf(sql, Schema.Struct({ id: Schema.String }))(taken, [given.billingPeriod, given.currency]),
        unavailable("create")
      )
      return yield* refused(
        `${given.billingPeriod} has a vault for ${given.currency} already, ${other?.id}: "purser vault rotate ${other?.id}" gives another key under the same cap, `
          + `"purser vault raise" sets another cap, and --separate --reason makes a second cap beside it, which knows nothing of the first one's payments`
      )
    }),
    addKey: Effect.fnUntraced(function*({ expiresAtMs, reason, revokesOthers, vault }) {
      const { hint, key } = makeVaultKey()
      const expires = expiresAtMs === null ? null : String(expiresAtMs)
      const found = yield* vaults("rotate", addKeySql, [vault, hashVaultKey(key), hint, expires, String(revokesOthers), reason])
      return { key, vault: yield* one(vault, found) }
    }),
    list: vaults("list", `select ${columns("v")} from purser.vaults v order by created_at, id`, []),
    show: (id) => Effect.flatMap(vaults("show", `select ${columns("v")} from purser.vaults v where id = $1::text`, [id]), (found) => one(id, found)),
    revoke: (id, reason) => Effect.flatMap(vaults("revoke", revokeSql, [id, reason]), (found) => one(id, found)),
    raise: Effect.fnUntraced(function*({ expectedMinor, headroomPercent, id, reason }) {
      if (reason.trim() === "") return yield* refused("a cap is raised with a reason")
      if (!safe(expectedMinor) || (headroomPercent !== null && (headroomPercent < 100 || headroomPercent > 200))) return yield* refused("the figures are out of range")
      const [raised] = yield* vaults("raise", raiseSql, [id, String(expectedMinor), headroomPercent === null ? null : String(headroomPercent), reason])
      if (raised !== undefined) return raised
      const { heldMinor, paidMinor } = yield* one(id, yield* vaults("raise", `select ${columns("v")} from purser.vaults v where id = $1::text`, [id]))
      return yield* refused(`the cap cannot be lower than what is paid and held: ${paidMinor} and ${heldMinor}, in minor units`)
    }),
    release: Effect.fnUntraced(function*({ customer, id, reason }) {
      if (reason.trim() === "") return yield* refused("room is released with a reason: what shows that no money moved and none will")
      const [released] = yield* vaults("release", releaseSql, [id, customer, reason])
      if (released !== undefined) return released
      const { id: found } = yield* one(id, yield* vaults("release", `select ${columns("v")} from purser.vaults v where id = $1::text`, [id]))
      return yield* refused(`vault ${found} holds nothing for customer ${customer}`)
    }),
    setKilled: (killed, reason) =>
      Effect.mapBoth(rowsOf(sql, Schema.Struct({ changed: Schema.Boolean }))(killSql, [String(killed), reason]), {
        onFailure: unavailable("kill"),
        onSuccess: ([row]) => row?.changed === true
      }),
    log: ({ after, limit, vault }) =>
      Effect.mapError(lines(logSql, [String(after), vault ?? "", String(limit)]), unavailable("log")),
    tail: (vault, count) =>
      rowsOf(sql, Schema.Struct({ seq: Schema.Finite }))(lastSql, [vault ?? "", String(count)]).pipe(
        Effect.map((found) => found[0]?.seq ?? 0),
        Effect.mapError(unavailable("log"))
      )
  })
})

/** The acts of people. Methods need nothing and fail with `VaultStoreError`. */
export class VaultAdmin extends Context.Service<VaultAdmin, {
  /** Makes a vault and its first key, which is given here and never again. Refused when the period and currency have one. */
  readonly create: (vault: NewVault) => Effect.Effect<{ readonly key: Redacted.Redacted; readonly vault: Vault }, VaultStoreError>
  /** Makes another key of a vault, under the same cap and guard. */
  readonly addKey: (key: NewKey) => Effect.Effect<{ readonly key: Redacted.Redacted; readonly vault: Vault }, VaultStoreError>
  readonly list: Effect.Effect<ReadonlyArray<Vault>, VaultStoreError>
  readonly show: (id: string) => Effect.Effect<Vault, VaultStoreError>
  /** Ends every key of a vault. What was paid and is held stays with the vault. */
  readonly revoke: (id: string, reason: string) => Effect.Effect<Vault, VaultStoreError>
  /** Sets other figures, with a reason that is kept; the headroom stays when it is null. Refused below what is paid and held. */
  readonly raise: (change: {
    readonly id: string
    readonly expectedMinor: number
    readonly headroomPercent: number | null
    readonly reason: string
  }) => Effect.Effect<Vault, VaultStoreError>
  /**
   * Gives back what is held for a customer, on a person's word that no money moved and none will. The idempotency keys of
   * it are stopped; what Stripe says to have paid all the same is counted when it is seen.
   */
  readonly release: (given: { readonly id: string; readonly customer: string; readonly reason: string }) => Effect.Effect<Vault, VaultStoreError>
  /** Switches every key off, or on again. */
  readonly setKilled: (killed: boolean, reason: string) => Effect.Effect<boolean, VaultStoreError>
  /** Lines of the audit trail after a `seq`, oldest first. */
  readonly log: (query: {
    readonly vault: string | undefined
    readonly after: number
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<AuditLine>, VaultStoreError>
  /** The `seq` after which the last so many lines are. */
  readonly tail: (vault: string | undefined, lines: number) => Effect.Effect<number, VaultStoreError>
}>()("@purser/spend-cap-proxy/VaultAdmin") {
  /** On the tables of the proxy's migrations. */
  static readonly layer: Layer.Layer<VaultAdmin, never, SqlClient.SqlClient> = Layer.effect(VaultAdmin, make)
}
