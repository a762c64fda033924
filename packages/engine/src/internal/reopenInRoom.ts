/** The move of a charge from a refused attempt to the next one: room first, then the row. */
import { type ChargeRecord, Ledger, type LedgerError, type ReopenInput, SpendCap, type SpendCapError } from "@purser/core"
import { Effect, Result } from "effect"

/** A charge that ended unpaid, as its caller has read it. */
export interface EndedCharge extends Pick<ChargeRecord, "attempt" | "chargeKey" | "request"> {
  readonly state: ReopenInput["from"][number]
}

/** Who asks again, why, and with what. */
interface Act extends Pick<ReopenInput, "actor" | "reason"> {
  readonly paymentMethod?: string | undefined
}

/** What became of some charges. */
export interface ReopenedInRoom<A> {
  /** Those that have room for the next attempt, by the attempt and the state that they leave, and how many of them were moved: others may have been faster. */
  readonly asked: ReadonlyArray<{ readonly charges: ReadonlyArray<A>; readonly moved: number }>
  /** Those that stand as they stood, and the cap's refusal. */
  readonly withoutRoom: ReadonlyArray<{ readonly charge: A; readonly error: SpendCapError }>
}

/**
 * Takes room for the next attempt of each, and moves those that have it. Where the cap does not answer, those that have room are moved before
 * it fails: nobody else would make use of it.
 */
export const reopenInRoom = Effect.fnUntraced(function*<A extends EndedCharge>(
  charges: ReadonlyArray<A>, { actor, paymentMethod, reason }: Act
): Effect.fn.Return<ReopenedInRoom<A>, LedgerError | SpendCapError, Ledger | SpendCap> {
  const ledger = yield* Ledger
  const cap = yield* SpendCap
  const answers = yield* Effect.forEach(charges, (charge) => {
    const { attempt, chargeKey, request: { amountMinor, billingPeriod, currency, namespace }, state } = charge
    // Before the row moves; the pipeline finds it held. What waits for its customer holds the room of its own attempt still, which
    // may end unpaid before the row moves, and gives back no later attempt's.
    const attemptHolding = state === "requires_action" ? attempt : attempt + 1
    return Effect.map(Effect.result(cap.reserve({ namespace, billingPeriod, currency, chargeKey, attempt: attemptHolding, amountMinor })), (room) => ({ charge, room }))
  }, { concurrency: "unbounded" })
  const inRoom = answers.flatMap(({ charge, room }) => Result.isSuccess(room) ? [charge] : [])
  const refused = answers.flatMap(({ charge, room }) => Result.isFailure(room) ? [{ charge, error: room.failure }] : [])
  const asked = yield* Effect.forEach(Map.groupBy(inRoom, ({ attempt, state }) => `${state} ${attempt}`).values(), (alike) => {
    const { attempt, state } = alike[0]!
    const chargeKeys = alike.map(({ chargeKey }) => chargeKey)
    return Effect.map(
      ledger.reopen({ chargeKeys, from: [state], attempt, actor, reason, ...(paymentMethod === undefined ? {} : { paymentMethod }) }),
      (moved) => ({ charges: alike, moved })
    )
  })
  const away = refused.find(({ error }) => error.reason._tag === "CapUnavailable")
  if (away !== undefined) return yield* away.error
  return { asked, withoutRoom: refused }
})
