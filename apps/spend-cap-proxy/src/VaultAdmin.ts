/**
 * What people do with vaults: make, list, revoke, raise, switch off, and read the audit trail. Each act writes its own
 * line of the trail in the same statement as the change.
 */
import { capOf } from "@purser/core"
import { Context, Effect, Layer, type Redacted, Result, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { rows, unavailable } from "./internal/vaultQuery.ts"
import { allowPattern, defaultAllow } from "./RoutePolicy.ts"
import { AuditLine, type NewVault, Vault } from "./Vault.ts"
import { hashVaultKey, makeVaultKey } from "./VaultKey.ts"
import { VaultMissing, VaultRefused, VaultStoreError } from "./VaultStoreError.ts"

const ms = (column: string) => `extract(epoch from ${column})::float8 * 1000`
const columns = `id, key_hint as "keyHint", name, billing_period as "billingPeriod", currency, expected_minor::float8 as "expectedMinor",
  headroom_percent as "headroomPercent", cap_minor::float8 as "capMinor", held_minor::float8 as "heldMinor", paid_minor::float8 as "paidMinor",
  refunded_minor::float8 as "refundedMinor", payments::float8 as payments, calls::float8 as calls, max_calls::float8 as "maxCalls",
  max_per_charge_minor::float8 as "maxPerChargeMinor", allow, customers, duplicate_guard as "duplicateGuard", ${ms("expires_at")} as "expiresAtMs",
  ${ms("revoked_at")} as "revokedAtMs", ${ms("created_at")} as "createdAtMs", (select killed from purser.kill_switch) as killed`

const event = (act: string, from: string, detail: string) =>
  `insert into purser.audit (at, vault_id, act, verdict, currency, amount_minor, detail)
  select purser.now(), id, '${act}', '${act}', currency, cap_minor, ${detail} from ${from}`

const createSql = `with n as (
  insert into purser.vaults (id, key_hash, key_hint, name, billing_period, currency, expected_minor, headroom_percent, cap_minor, max_calls,
    max_per_charge_minor, allow, allow_pattern, customers, duplicate_guard, expires_at, created_at)
  select $1::text, $2::text, $3::text, x.name, x."billingPeriod", x.currency, x."expectedMinor", x."headroomPercent", $4::text::bigint, x."maxCalls",
    x."maxPerChargeMinor", x.allow, x.patterns, x.customers, x."duplicateGuard", to_timestamp(x."expiresAtMs" / 1000.0), purser.now()
  from jsonb_to_record($5::text::jsonb) as x(name text, "billingPeriod" text, currency text, "expectedMinor" bigint, "headroomPercent" integer,
    "maxCalls" bigint, "maxPerChargeMinor" bigint, allow text[], patterns text[], customers text[], "duplicateGuard" boolean, "expiresAtMs" float8)
  returning *
), e as (${event("created", "n", "null")})
select ${columns} from n`

const revokeSql = `with u as (update purser.vaults set revoked_at = coalesce(revoked_at, purser.now()) where id = $1::text returning *),
  e as (${event("revoked", "u", "$2::text")})
select ${columns} from u`

const raiseSql = `with u as (
  update purser.vaults set expected_minor = $2::text::bigint, headroom_percent = $3::text::integer, cap_minor = $4::text::bigint where id = $1::text returning *
), e as (${event("raised", "u", "$5::text")})
select ${columns} from u`

const killSql = `with u as (update purser.kill_switch set killed = $1::text::boolean, reason = $2::text, at = purser.now() returning *),
  e as (insert into purser.audit (at, act, verdict, detail) select at, case when killed then 'killed' else 'unkilled' end,
    case when killed then 'killed' else 'unkilled' end, reason from u)
select killed from u`

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
  const vaults = (operation: string, statement: string, params: ReadonlyArray<unknown>) =>
    Effect.mapError(rows(sql, Vault, statement, params), unavailable(operation))
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
      const { hint, id, key } = makeVaultKey()
      const cap = String(capOf(BigInt(given.expectedMinor), given.headroomPercent))
      const found = yield* vaults("create", createSql, [id, hashVaultKey(key), hint, cap, JSON.stringify({ ...given, allow, patterns })])
      return { key, vault: yield* one(id, found) }
    }),
    list: vaults("list", `select ${columns} from purser.vaults order by created_at, id`, []),
    show: (id) => Effect.flatMap(vaults("show", `select ${columns} from purser.vaults where id = $1::text`, [id]), (found) => one(id, found)),
    revoke: (id, reason) => Effect.flatMap(vaults("revoke", revokeSql, [id, reason]), (found) => one(id, found)),
    raise: Effect.fnUntraced(function*({ expectedMinor, headroomPercent, id, reason }) {
      if (reason.trim() === "") return yield* refused("a cap is raised with a reason")
      if (!safe(expectedMinor) || headroomPercent < 100 || headroomPercent > 200) return yield* refused("the figures are out of range")
      const cap = String(capOf(BigInt(expectedMinor), headroomPercent))
      return yield* one(id, yield* vaults("raise", raiseSql, [id, String(expectedMinor), String(headroomPercent), cap, reason]))
    }),
    setKilled: (killed, reason) =>
      Effect.asVoid(Effect.mapError(rows(sql, Schema.Unknown, killSql, [String(killed), reason]), unavailable("kill"))),
    log: ({ after, limit, vault }) =>
      Effect.mapError(rows(sql, AuditLine, logSql, [String(after), vault ?? "", String(limit)]), unavailable("log")),
    tail: (vault, lines) =>
      rows(sql, Schema.Struct({ seq: Schema.Finite }), lastSql, [vault ?? "", String(lines)]).pipe(
        Effect.map((found) => found[0]?.seq ?? 0),
        Effect.mapError(unavailable("log"))
      )
  })
})

/** The acts of people. Methods need nothing and fail with `VaultStoreError`. */
export class VaultAdmin extends Context.Service<VaultAdmin, {
  /** Makes a vault. The key is given here and never again. */
  readonly create: (vault: NewVault) => Effect.Effect<{ readonly key: Redacted.Redacted; readonly vault: Vault }, VaultStoreError>
  readonly list: Effect.Effect<ReadonlyArray<Vault>, VaultStoreError>
  readonly show: (id: string) => Effect.Effect<Vault, VaultStoreError>
  /** Ends a key for good. */
  readonly revoke: (id: string, reason: string) => Effect.Effect<Vault, VaultStoreError>
  /** Sets other figures, with a reason that is kept. */
  readonly raise: (change: {
    readonly id: string
    readonly expectedMinor: number
    readonly headroomPercent: number
    readonly reason: string
  }) => Effect.Effect<Vault, VaultStoreError>
  /** Switches every key off, or on again. */
  readonly setKilled: (killed: boolean, reason: string) => Effect.Effect<void, VaultStoreError>
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
