/** Caps with their history, and the vault keys of the spend-cap proxy. */
import { type BillingPeriod, type CapScope, ChargePause, Money, OperatorTrail, parseCurrency, SpendCap, type SpendCapError } from "@purser/core"
import { Effect, Result } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ConsoleApi } from "../../api/ConsoleApi.ts"
import { ActRefused, NotThere } from "../../api/ConsoleError.ts"
import { VaultRoom } from "../../VaultRoom.ts"
import { away, makePerform } from "../perform.ts"

const linesMax = 200

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

  return handlers
    .handle("list", () =>
      Effect.all({
        caps: cap.report(),
        events: trail.capEvents(undefined, linesMax),
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
          const figures = yield* Effect.mapError(
            cap.raise({ ...scope, expectedMinor: BigInt(expected.success.amountMinor), headroomPercent: payload.headroomPercent, actor, reason: payload.reason }),
            refusal
          )
          return `the cap is ${Money.formatMinor(figures.capMinor, scope.currency)} ${scope.currency} now`
        })
      ))
    .handle("close", ({ payload }) =>
      perform({ act: "close cap", subject: nameOf(payload), reason: payload.reason }, () =>
        Effect.flatMap(scopeOf(payload), (scope) => Effect.mapBoth(cap.close(scope), { onFailure: refusal, onSuccess: () => "the cap takes no more charges" }))))
    .handle("reopen", ({ payload }) =>
      perform({ act: "reopen cap", subject: nameOf(payload), reason: payload.reason }, (actor) =>
        Effect.flatMap(scopeOf(payload), (scope) =>
          Effect.mapBoth(cap.reopen({ ...scope, actor, reason: payload.reason }), { onFailure: refusal, onSuccess: () => "the cap takes charges again" }))))
    .handle("vaults", () =>
      Effect.gen(function*() {
        const { log, vaults } = yield* (yield* room).look
        return { vaults, log, killed: vaults.some(({ killed }) => killed) }
      }))
    .handle("killVaults", ({ payload: { killed, reason } }) =>
      perform({ act: killed ? "switch vault keys off" : "switch vault keys on", subject: "vault keys", reason }, (actor) =>
        Effect.flatMap(room, ({ setKilled }) => Effect.as(setKilled(killed, `${actor}: ${reason}`), killed ? "every vault key is off" : "vault keys are on again"))))
    .handle("revokeVault", ({ payload: { reason, vault } }) =>
      perform({ act: "revoke vault keys", subject: vault, reason }, (actor) =>
        Effect.flatMap(room, ({ revoke }) => Effect.as(revoke(vault, `${actor}: ${reason}`), "its keys are over; what was paid and is held stays"))))
}))
