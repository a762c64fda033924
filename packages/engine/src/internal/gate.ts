/**
 * The processor behind the switch and the breaker: calls wait while charging is paused, and a processor that answers nobody
 * any more pauses it, for every worker of the database, until it answers again.
 *
 * Nothing is failed here and nothing is repeated; a call that is under way is never cut short. `confirm` is the one call
 * that does not wait by itself: the pipeline waits for it before it asks for the lease, so that a lease that was seen is not
 * hours old when the money is asked for.
 */
import type { ChargeError, ChargeGateway, ChargePause, ClaimedCharge, GatewayPayment } from "@purser/core"
import { Cause, Duration, Effect, type Exit, Random, Result, type Scope } from "effect"
import type { PipelineSettings } from "../PipelineOptions.ts"
import type { Held, HoldLease, LeaseKeeper } from "./leaseKeeper.ts"

type Gateway = ChargeGateway["Service"]

/** The processor as the pipeline asks it. */
export interface GuardedGateway extends Gateway {
  /** `confirm`, with the charge's lease held meanwhile: one frame for the lease and the watch, since every charge passes here. */
  readonly confirmHeld: (leases: LeaseKeeper, charge: ClaimedCharge, ...call: Parameters<Gateway["confirm"]>) => Effect.Effect<GatewayPayment, ChargeError>
}

/** No whole answer of the processor. A stored 5xx is one: it says nothing about now. */
const isSilence = ({ reason }: ChargeError): boolean =>
  reason._tag === "GatewayTimeout" || (reason._tag === "GatewayUnavailable" && !reason.replayed)

const probeMaxMs = 60_000

/** The gateway, watched. The probe runs as long as the scope. */
export const guardGateway = Effect.fnUntraced(function*(
  gateway: Gateway,
  pause: ChargePause["Service"],
  settings: PipelineSettings
): Effect.fn.Return<GuardedGateway, never, Scope.Scope> {
  const actor = settings.worker
  let silences = 0

  const trip = (error: ChargeError) =>
    pause.pause({ cause: "outage", actor, reason: `${settings.outageAfter} calls in a row without an answer; the last one: ${error.message}` }).pipe(
      Effect.flatMap((changed) => changed ? Effect.logError("the processor does not answer: charging pauses until it does") : Effect.void),
      Effect.catch((failure) => Effect.logWarning(`the outage cannot be noted: ${failure.message}`))
    )
  const note = (exit: Exit.Exit<unknown, ChargeError>): Effect.Effect<void> | undefined => {
    if (exit._tag === "Success") {
      silences = 0
      return undefined
    }
    const failed = Cause.findError(exit.cause)
    if (Result.isFailure(failed)) return undefined
    silences = isSilence(failed.success) ? silences + 1 : 0
    return silences === settings.outageAfter ? trip(failed.success) : undefined
  }
  const watched = <A>(call: Effect.Effect<A, ChargeError>) => Effect.onExitPrimitive(call, note)
  const gated = <A>(call: Effect.Effect<A, ChargeError>) => Effect.andThen(pause.whenOpen, watched(call))

  // Every process asks for itself: the one that noticed the outage may be gone.
  const probeUntilAnswered = Effect.gen(function*() {
    for (let waitMs = settings.outageProbeMs;; waitMs = Math.min(waitMs * 2, probeMaxMs)) {
      yield* Effect.sleep(Duration.millis(waitMs * (yield* Random.nextBetween(0.8, 1.2))))
      if (!(yield* pause.view).some(({ cause }) => cause === "outage")) return
      const answer = yield* Effect.result(gateway.probe ?? Effect.void)
      if (answer._tag === "Failure" && isSilence(answer.failure)) continue
      silences = 0
      yield* pause.resume({ cause: "outage", actor, reason: "the processor answers again" }).pipe(
        Effect.flatMap((changed) => changed ? Effect.logWarning("the processor answers again: charging goes on") : Effect.void),
        Effect.catch((failure) => Effect.logWarning(`the end of the outage cannot be noted: ${failure.message}`))
      )
      return
    }
  })
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(pause.whenOutage, probeUntilAnswered)))

  return {
    ...wrapCalls(gateway, gated),
    confirm: (order, input) => watched(gateway.confirm(order, input)),
    confirmHeld: (leases, charge, order, input) => {
      let held: Held | undefined
      return Effect.onExitPrimitive(
        Effect.suspend(() => {
          held = leases.take(charge)
          return gateway.confirm(order, input)
        }),
        (exit) => {
          const noted = note(exit)
          if (noted !== undefined) return Effect.ensuring(noted, Effect.sync(() => leases.letGo(held)))
          leases.letGo(held)
          return undefined
        }
      )
    }
  }
})

/** The same gateway with something around every call. */
const wrapCalls = (gateway: Gateway, wrap: <A>(call: Effect.Effect<A, ChargeError>) => Effect.Effect<A, ChargeError>): Gateway => {
  const { prepare } = gateway
  return {
    ...gateway,
    create: (order, keySuffix) => wrap(gateway.create(order, keySuffix)),
    find: (order, sinceMs) => wrap(gateway.find(order, sinceMs)),
    retrieve: (order, id) => wrap(gateway.retrieve(order, id)),
    defaultPaymentMethod: (order) => wrap(gateway.defaultPaymentMethod(order)),
    ...(prepare === undefined ? {} : { prepare: (order, id, keySuffix) => wrap(prepare(order, id, keySuffix)) } satisfies Pick<Gateway, "prepare">),
    confirm: (order, input) => wrap(gateway.confirm(order, input)),
    cancel: (order, id) => wrap(gateway.cancel(order, id))
  }
}

/** The gateway for one charge, whose lease is held during every call. */
export const forCharge = (gateway: Gateway, hold: ReturnType<HoldLease>): Gateway => wrapCalls(gateway, hold)
