/**
 * The way of a request inside the program, and of webhooks to a function instead of a URL.
 */
import { type Context, Effect } from "effect"
import { ConnectionLost, type SimRequest, type SimResponse, type WebhookRequest } from "../InProcess.ts"
import { handle } from "./exchange.ts"
import type { Simulator } from "./Simulator.ts"
import type { Post } from "./Webhooks.ts"

/** Runs an act after a while on Effect's Clock, or when a test releases all delays. */
const laterOn = (simulator: Simulator, context: Context.Context<never>) => (delayMs: number, act: () => void): void => {
  if (delayMs <= 0) return act()
  const stop = () => {
    simulator.waiting.delete(goOn)
    simulator.timers.delete(stop)
    timer.interruptUnsafe()
  }
  const goOn = () => {
    stop()
    act()
  }
  simulator.waiting.add(goOn)
  simulator.timers.add(stop)
  // Sleeps first, so that `timer` is there before anyone needs it.
  const timer = Effect.runForkWith(context)(Effect.andThen(Effect.sleep(delayMs), Effect.sync(goOn)))
}

/** Asks the simulator. A caller that gives up ends the waiting alone: what was asked goes on, as at Stripe. */
export const send = (simulator: Simulator) => (request: SimRequest): Effect.Effect<SimResponse, ConnectionLost> =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.callback<SimResponse, ConnectionLost>((resume) => {
      let gone = false
      const lost = (reason: "reset" | "truncated") =>
        resume(Effect.fail(new ConnectionLost({ reason, path: request.path })))
      handle(simulator, {
        later: laterOn(simulator, context),
        write: (status, headers, body) => resume(Effect.succeed({ status, headers, body })),
        // Half an answer and then silence is silence, for someone who waits for the whole.
        half: (_status, _headers, _body, close) => {
          if (close) lost("truncated")
        },
        reset: () => lost("reset"),
        gone: () => gone
      }, {
        method: request.method,
        target: request.path,
        header: (name) => request.headers?.[name],
        body: request.body ?? ""
      })
      return Effect.sync(() => {
        gone = true
      })
    })
  )

/** Webhooks to a function that answers with a status. */
export const toFunction = (
  context: Context.Context<never>,
  receive: (request: WebhookRequest) => Effect.Effect<number>
): Post =>
(request, done) => {
  Effect.runForkWith(context)(Effect.flatMap(receive(request), (status) => Effect.sync(() => done(status))))
}
