/** What log lines say of the work that they are about: the charge by its key, and the run that its request belongs to, where that is known. */
import { type ChargeRequest, type ClaimedCharge, RunMark } from "@purser/core"
import { type Cause, Context, Effect, type Exit, type Fiber, References } from "effect"

/** What is done for the request, with its run on every line. */
export const underItsRun = <A, E, R>(request: ChargeRequest, done: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  const runId = RunMark.of(request)
  return runId === undefined ? done : Effect.annotateLogs(done, { runId })
}

/** What follows where the work on a charge ends otherwise than with an answer. */
type OnFailure<E> = (charge: ClaimedCharge, cause: Cause.Cause<E>) => Effect.Effect<void> | undefined

/** The work on a charge: its key is on every line of it, and something follows where it ends otherwise than with an answer. */
export class Noting<E> {
  private readonly charge: ClaimedCharge
  private readonly onFailure: OnFailure<E>
  private fiber: Fiber.Fiber<unknown, unknown> | undefined = undefined
  private before: Context.Context<never> | undefined = undefined

  constructor(charge: ClaimedCharge, onFailure: OnFailure<E>) {
    this.charge = charge
    this.onFailure = onFailure
  }

  /** From now on, within a frame that ends it. */
  begin(fiber: Fiber.Fiber<unknown, unknown>): void {
    const before = fiber.context
    this.fiber = fiber
    this.before = before
    fiber.setContext(Context.add(before, References.CurrentLogAnnotations, { ...fiber.getRef(References.CurrentLogAnnotations), chargeKey: this.charge.lease.chargeKey }))
  }

  /** However it ended, and wherever it was stopped. */
  end(exit: Exit.Exit<unknown, E>): Effect.Effect<void> | undefined {
    if (this.before !== undefined) this.fiber?.setContext(this.before)
    const after = exit._tag === "Success" ? undefined : this.onFailure(this.charge, exit.cause)
    return after === undefined ? undefined : Effect.annotateLogs(after, { chargeKey: this.charge.lease.chargeKey })
  }
}

/** Such work in a frame of its own. */
export const notingKey = <A, E>(noting: Noting<E>, work: () => Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.onExitPrimitive(
    Effect.withFiber((fiber) => {
      noting.begin(fiber)
      return work()
    }),
    (exit) => noting.end(exit)
  )
