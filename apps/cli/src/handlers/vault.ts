/** `purser vault …`: the vault keys of the spend-cap proxy by hand. */
import { type Currency, Money } from "@purser/core"
import { type AuditLine, type Vault, VaultAdmin, VaultDesk } from "@purser/spend-cap-proxy"
import { Clock, Effect, Redacted, Result } from "effect"
import { refused } from "../CommandFailed.ts"
import { serving } from "../launch.ts"
import { note, out } from "../ui/Output.ts"
import { table } from "../ui/table.ts"
import { gaugeLines } from "../ui/vaultGauge.ts"
import { parseHeadroom } from "./expectedTotals.ts"

const desk = <A, E>(use: (admin: VaultAdmin["Service"]) => Effect.Effect<A, E>) =>
  Effect.flatMap(VaultAdmin, use).pipe(Effect.provide(VaultDesk.layerAdmin))

const isLive = ({ expiresAtMs, revokedAtMs }: Vault["keys"][number], nowMs: number): boolean =>
  revokedAtMs === null && (expiresAtMs === null || expiresAtMs > nowMs)

const stateOf = (vault: Vault, nowMs: number): string =>
  vault.killed
    ? "killed"
    : vault.keys.every(({ revokedAtMs }) => revokedAtMs !== null)
    ? "revoked"
    : vault.keys.some((key) => isLive(key, nowMs))
    ? "open"
    : "expired"

const iso = (ms: number) => new Date(ms).toISOString()

const figures = Effect.fnUntraced(function*(expectedTotal: string, headroom: string, currency: Currency) {
  const money = yield* amount("--expected-total", expectedTotal, currency)
  return { expectedMinor: money, headroomPercent: yield* parseHeadroom(headroom) }
})

const amount = (flag: string, text: string, currency: Currency) => {
  const money = Money.fromDecimal(text, currency, { maximumMinor: Number.MAX_SAFE_INTEGER })
  return Result.isFailure(money) ? Effect.fail(refused(`${flag}: ${money.failure.message}`)) : Effect.succeed(money.success.amountMinor)
}

const momentOf = (text: string) => {
  const ms = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2}))?$/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(ms)) return Effect.fail(refused(`--expires ${text}: expected 2026-08-31 or 2026-08-31T12:00:00Z`))
  return Effect.flatMap(Clock.currentTimeMillis, (nowMs) => ms > nowMs ? Effect.succeed(ms) : Effect.fail(refused(`--expires ${text} has passed`)))
}

const vaultTable = (vaults: ReadonlyArray<Vault>, nowMs: number): string =>
  table(
    ["vault", "keys", "name", "period", "currency", "cap", "paid", "held", "used", "payments", "calls", "state"],
    vaults.map((vault) => {
      const money = (minor: number) => Money.formatMinor(minor, vault.currency as Currency)
      return [
        vault.id, vault.keys.filter((key) => isLive(key, nowMs)).map(({ hint }) => `…${hint}`).join(" "), vault.name, vault.billingPeriod, vault.currency, money(vault.capMinor), money(vault.paidMinor), money(vault.heldMinor),
        `${Math.floor((vault.paidMinor + vault.heldMinor) * 100 / vault.capMinor)}%`, String(vault.payments), String(vault.calls), stateOf(vault, nowMs)
      ]
    }),
    [5, 6, 7, 8, 9, 10]
  )

const print = (vaults: ReadonlyArray<Vault>) => Effect.flatMap(Clock.currentTimeMillis, (nowMs) => out(vaultTable(vaults, nowMs)))

/** Makes a vault and prints its key, this once. */
export const create = Effect.fnUntraced(function*(given: {
  readonly billingPeriod: string
  readonly currency: Currency
  readonly expectedTotal: string
  readonly headroom: string
  readonly name: string
  readonly expires: string | undefined
  readonly allow: ReadonlyArray<string>
  readonly customers: ReadonlyArray<string>
  readonly customersGiven: boolean
  readonly maxPerCharge: string | undefined
  readonly maxCalls: number | undefined
  readonly duplicateGuard: boolean
  readonly separate: boolean
  readonly reason: string
  readonly json: boolean
}) {
  if (given.separate && given.reason.trim() === "") return yield* refused("--separate makes a second cap for a period that has one: say why with --reason")
  const { currency } = given
  const { expectedMinor, headroomPercent } = yield* figures(given.expectedTotal, given.headroom, currency)
  const made = yield* desk((admin) =>
    Effect.gen(function*() {
      return yield* admin.create({
        name: given.name, billingPeriod: given.billingPeriod, currency, expectedMinor, headroomPercent, allow: given.allow,
        customers: given.customersGiven ? given.customers : null,
        maxPerChargeMinor: given.maxPerCharge === undefined ? null : yield* amount("--max-per-charge", given.maxPerCharge, currency),
        maxCalls: given.maxCalls ?? null,
        duplicateGuard: given.duplicateGuard,
        expiresAtMs: given.expires === undefined ? null : yield* momentOf(given.expires),
        ...(given.separate ? { separateReason: given.reason } : {})
      })
    }))
  yield* printKey(made, given.json)
})

const printKey = Effect.fnUntraced(function*(made: { readonly key: Redacted.Redacted; readonly vault: Vault }, json: boolean) {
  const { billingPeriod, capMinor, currency, id } = made.vault
  const key = Redacted.value(made.key)
  if (json) return yield* out(JSON.stringify({ key, ...made.vault }))
  yield* out(key)
  yield* note(`This key is shown once. Vault ${id}: at most ${Money.formatMinor(capMinor, currency as Currency)} ${currency} for ${billingPeriod}, with all its keys together.`)
})

/** Makes another key of a vault, under the same cap, and prints it, this once. */
export const rotate = Effect.fnUntraced(function*(given: {
  readonly id: string
  readonly revokeOld: boolean
  readonly expires: string | undefined
  readonly reason: string
  readonly json: boolean
}) {
  const expiresAtMs = given.expires === undefined ? null : yield* momentOf(given.expires)
  const made = yield* desk((admin) => admin.addKey({ vault: given.id, revokesOthers: given.revokeOld, expiresAtMs, reason: given.reason }))
  yield* printKey(made, given.json)
})

/** Every vault. */
export const list = (json: boolean) =>
  Effect.flatMap(desk((admin) => admin.list), (vaults) =>
    json ? out(JSON.stringify(vaults)) : vaults.length === 0 ? out("no vault was made") : print(vaults))

/** One vault with its rules. */
export const show = Effect.fnUntraced(function*(id: string, json: boolean) {
  const vault = yield* desk((admin) => admin.show(id))
  if (json) return yield* out(JSON.stringify(vault))
  yield* print([vault])
  const money = (minor: number) => Money.formatMinor(minor, vault.currency as Currency)
  yield* out([
    "",
    `expected   ${money(vault.expectedMinor)} × ${(vault.headroomPercent / 100).toFixed(2)}`,
    `allows     ${vault.allow.join("\n           ")}`,
    `customers  ${vault.customers === null ? "all" : vault.customers.join(", ")}`,
    `a charge   ${vault.maxPerChargeMinor === null ? "any size" : `at most ${money(vault.maxPerChargeMinor)}`}`,
    `calls      ${vault.maxCalls === null ? "any number" : `at most ${vault.maxCalls}`}`,
    `duplicates ${vault.duplicateGuard ? "one paid charge for each customer" : "by idempotency key alone"}`,
    `refunded   ${money(vault.refundedMinor)}`,
    `made       ${iso(vault.createdAtMs)}`,
    ...(vault.separate ? ["separate   a second cap of its period and currency"] : []),
    ...vault.keys.map(({ createdAtMs, expiresAtMs, hint, revokedAtMs }) =>
      `key …${hint}  made ${iso(createdAtMs)}${expiresAtMs === null ? "" : `, expires ${iso(expiresAtMs)}`}${revokedAtMs === null ? "" : `, revoked ${iso(revokedAtMs)}`}`)
  ].join("\n"))
})

/** Ends every key of a vault. */
export const revoke = (id: string, reason: string) => Effect.flatMap(desk((admin) => admin.revoke(id, reason)), (vault) => print([vault]))

const capText = ({ capMinor, currency, expectedMinor, headroomPercent }: Vault): string =>
  `${Money.formatMinor(capMinor, currency as Currency)} (${Money.formatMinor(expectedMinor, currency as Currency)} × ${(headroomPercent / 100).toFixed(2)}) ${currency}`

/** Sets another cap. */
export const raise = (given: { readonly id: string; readonly expectedTotal: string; readonly headroom: string | undefined; readonly reason: string }) =>
  Effect.flatMap(
    desk((admin) =>
      Effect.gen(function*() {
        const before = yield* admin.show(given.id)
        const vault = yield* admin.raise({
          id: given.id,
          expectedMinor: yield* amount("--expected-total", given.expectedTotal, before.currency as Currency),
          headroomPercent: given.headroom === undefined ? null : yield* parseHeadroom(given.headroom),
          reason: given.reason
        })
        return { before, vault }
      })),
    ({ before, vault }) => Effect.andThen(print([vault]), note(`The cap was ${capText(before)}, and is ${capText(vault)}.`))
  )

/** Gives back what is held for a customer, on a person's word. */
export const release = (given: { readonly id: string; readonly customer: string; readonly reason: string }) =>
  Effect.flatMap(desk((admin) => admin.release(given)), (vault) => print([vault]))

/** Switches every key off, or on. */
export const kill = (killed: boolean, reason: string) =>
  Effect.andThen(
    desk((admin) => admin.setKilled(killed, reason)),
    out(killed ? "every vault key is switched off (purser vault kill --off switches them on)" : "the vault keys are switched on")
  )

const page = 1000

const lineText = (line: AuditLine): ReadonlyArray<string> => [
  String(line.seq), iso(line.atMs), line.vault ?? "", line.act === "result" ? `→ ${line.decision}` : line.act,
  line.act === "decision" ? `${line.method} ${line.path}` : "",
  line.amountMinor === null ? "" : Money.formatMinor(line.amountMinor, line.currency as Currency), line.customer ?? "", line.idempotencyKey ?? "",
  line.code ?? line.verdict, line.status === null ? "" : String(line.status), line.requestId ?? "", line.detail ?? ""
]
const header = ["seq", "at", "vault", "act", "route", "amount", "customer", "idempotency key", "result", "status", "request id", "detail"]

/** The audit trail, page by page, so that any length of it can be exported. */
export const log = (given: { readonly id: string | undefined; readonly lines: number | undefined; readonly json: boolean }) =>
  desk((admin) =>
    Effect.gen(function*() {
      let after = given.lines === undefined ? 0 : yield* admin.tail(given.id, given.lines)
      const shown: Array<AuditLine> = []
      while (true) {
        const found = yield* admin.log({ vault: given.id, after, limit: page })
        if (given.json) for (const line of found) yield* out(JSON.stringify(line))
        else shown.push(...found)
        if (found.length < page) break
        after = found.at(-1)!.seq
      }
      if (!given.json) yield* out(shown.length === 0 ? "the audit trail is empty" : table(header, shown.map(lineText), [0, 5]))
    }))

/** How full the vaults are; follows them until stopped, and draws again only what changed. */
export const gauge = (given: { readonly id: string | undefined; readonly once: boolean; readonly json: boolean }) =>
  Effect.gen(function*() {
      const { id } = given
      // Opened for each look: an embedded folder that is kept open would keep kill and the proxy out.
      const read = desk((admin) => id === undefined ? admin.list : Effect.map(admin.show(id), (vault) => [vault]))
      let last = ""
      const draw = Effect.gen(function*() {
        const vaults = yield* read
        const nowMs = yield* Clock.currentTimeMillis
        const text = given.json
          ? vaults.map((vault) => JSON.stringify({
            vault: vault.id, billingPeriod: vault.billingPeriod, currency: vault.currency, capMinor: vault.capMinor, paidMinor: vault.paidMinor,
            heldMinor: vault.heldMinor, leftMinor: vault.capMinor - vault.paidMinor - vault.heldMinor, payments: vault.payments, calls: vault.calls,
            state: stateOf(vault, nowMs)
          })).join("\n")
          : gaugeLines(vaults, (vault) => stateOf(vault, nowMs))
        if (text !== last && text !== "") yield* out(text)
        last = text
      })
      if (given.once) return yield* draw
      return yield* serving(Effect.forever(Effect.andThen(draw, Effect.sleep("2 seconds"))))
    })
