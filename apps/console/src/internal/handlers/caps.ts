/** Caps with their history, and the vault keys of the spend-cap proxy. */
import { type BillingPeriod, type CapEvent, capOf, type CapScope, ChargePause, DunningBook, Money, OperatorTrail, parseCurrency, SpendCap, type SpendCapError } from "@purser/core"
import { Effect, Option, Result } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ConsoleApi } from "../../api/ConsoleApi.ts"
import { ActRefused, NotThere } from "../../api/ConsoleError.ts"
import { VaultRoom } from "../../VaultRoom.ts"
import { away, changedOr, makePerform } from "../perform.ts"

const linesMax = 200

/** Each line with the cap as the line before left it; null where that one is not among them. The newest is first. */
const withBefore = (events: ReadonlyArray<CapEvent>) => {
  const caps = new Map<string, bigint>()
  return events.toReversed().map((event) => {
    const scope = JSON.stringify([event.namespace, event.billingPeriod, event.currency])
    const before = caps.get(scope) ?? null
    caps.set(scope, event.capMinor)
    return { ...event, capBeforeMinor: before }
  }).toReversed()
}

/** What the keeper of the caps says is a refusal, unless it is away. */
const refusal = (error: SpendCapError) => error.reason._tag === "CapUnavailable" ? away(error) : new ActRefused({ message: error.message })

const scopeOf = Effect.fnUntraced(function*(given: { readonly namespace: string; readonly billingPeriod: string; readonly currency: string }): Effect.fn.Return<CapScope, ActRefused> {
  const currency = parseCurrency(given.currency)
  if (currency === undefined) return yield* new ActRefused({ message: `"${given.currency}" is not a currency that Stripe charges` })
  // The cap is there under this very word, or it is not there.
  return { namespace: given.namespace, billingPeriod: given.billingPeriod as BillingPeriod, currency }
})

const noRoom = new NotThere({ message: "this console knows no store of vault keys (PURSER_PROXY_DATABASE_URL, PURSER_PROXY_DATA_DIR)" })

/** The handlers of the group. */
export const layer = HttpApiBuilder.group(ConsoleApi, "caps", Effect.fnUntraced(function*(handlers) {
  const cap = yield* SpendCap
  const pause = yield* ChargePause
  const trail = yield* OperatorTrail
  const perform = yield* makePerform
  const vaults = yield* Effect.serviceOption(VaultRoom)
  const room = Effect.mapError(Effect.fromOption(vaults), () => noRoom)
  const nameOf = (of: { readonly namespace: string; readonly billingPeriod: string; readonly currency: string }) => `${of.namespace} ${of.billingPeriod} ${of.currency}`

  const cases = yield* Effect.serviceOption(DunningBook)
  /** Dunning cases that found no room look again at once; the cap is as it was set, whatever comes of that. */
  const wakeCases = (scope: CapScope) => Option.match(cases, { onNone: () => Effect.void, onSome: (book) => Effect.ignore(book.roomMade(scope), { log: "Warn", message: "dunning cases that wait for room look again by themselves, and not at once" }) })

  /** The cap as it stands, for what an act would change. */
  const standing = (scope: CapScope) =>
    Effect.map(Effect.mapError(cap.report(scope.billingPeriod), refusal), (caps) =>
      caps.find(({ currency, namespace }) => namespace === scope.namespace && currency === scope.currency))

  return handlers
    .handle("list", () =>
      Effect.all({
        caps: cap.report(),
        events: Effect.map(trail.capEvents(undefined, linesMax), withBefore),
        pauses: pause.inForce,
        pauseEvents: trail.pauseEvents(50)
      }).pipe(Effect.mapError(away)))
    .handle("raise", ({ payload }) =>
      perform(
        { act: "set cap", subject: nameOf(payload), reason: payload.reason, detail: `expected ${payload.expectedTotal}, headroom ${payload.headroomPercent} %` },
        Effect.fnUntraced(function*(actor) {
          const scope = yield* scopeOf(payload)
          const expected = Money.fromDecimal(payload.expectedTotal, scope.currency, { maximumMinor: Number.MAX_SAFE_INTEGER, minimumMinor: 1 })
          if (Result.isFailure(expected)) return yield* new ActRefused({ message: expected.failure.message })
          const before = yield* standing(scope)
          const capMinor = capOf(BigInt(expected.success.amountMinor), payload.headroomPercent)
          const money = (minor: bigint) => Money.formatMinor(minor, scope.currency)
          if (before !== undefined && capMinor < before.reservedMinor && payload.belowUsed !== true) {
            return yield* new ActRefused({ message: `the cap would be ${money(capMinor)} ${scope.currency}, below the ${money(before.reservedMinor)} that are used, and nothing more would fit: say belowUsed if that is meant` })
          }
          const figures = yield* Effect.mapError(
            cap.raise({ ...scope, expectedMinor: BigInt(expected.success.amountMinor), headroomPercent: payload.headroomPercent, actor, reason: payload.reason }),
            refusal
          )
          yield* wakeCases(scope)
          const isSame = before !== undefined && before.expectedMinor === figures.expectedMinor && before.headroomPercent === figures.headroomPercent
          return changedOr(!isSame, `the cap is ${money(figures.capMinor)} ${scope.currency} now`, `the cap was ${money(figures.capMinor)} ${scope.currency} before`)
        })
      ))
    .handle("close", ({ payload }) =>
      perform({ act: "close cap", subject: nameOf(payload), reason: payload.reason }, Effect.fnUntraced(function*(actor) {
        const scope = yield* scopeOf(payload)
        const before = yield* standing(scope)
        yield* Effect.mapError(cap.close(scope, { actor, reason: payload.reason }), refusal)
        return changedOr(before?.closed !== true, "the cap takes no more charges", "the cap was closed before")
      })))
    .handle("reopen", ({ payload }) =>
      perform({ act: "reopen cap", subject: nameOf(payload), reason: payload.reason }, Effect.fnUntraced(function*(actor) {
        const scope = yield* scopeOf(payload)
        const before = yield* standing(scope)
        yield* Effect.mapError(cap.reopen({ ...scope, actor, reason: payload.reason }), refusal)
        yield* wakeCases(scope)
        return changedOr(before?.closed !== false, "the cap takes charges again", "the cap was open before")
      })))
    .handle("vaults", () =>
      Effect.gen(function*() {
        const { log, vaults } = yield* (yield* room).look
        return { vaults, log, killed: vaults.some(({ killed }) => killed) }
      }))
    .handle("killVaults", ({ payload: { killed, reason } }) =>
      perform({ act: killed ? "switch vault keys off" : "switch vault keys on", subject: "vault keys", reason }, (actor) =>
        Effect.flatMap(room, ({ setKilled }) => Effect.map(setKilled(killed, `${actor}: ${reason}`), (isChanged) =>
          changedOr(isChanged, killed ? "every vault key is off" : "vault keys are on again", `vault keys were ${killed ? "off" : "on"} before`)))))
    .handle("revokeVault", ({ payload: { reason, vault } }) =>
      perform({ act: "revoke vault keys", subject: vault, reason }, (actor) =>
        Effect.flatMap(room, ({ revoke }) => Effect.map(revoke(vault, `${actor}: ${reason}`), (isChanged) =>
          changedOr(isChanged, "its keys are over; what was paid and is held stays", "its keys were over before")))))
}))
