/**
 * The way from a process to Stripe: the real client, whose requests leave into the simulated Stripe if the process is awake and
 * Stripe can be reached. And what each process is told about patience, by one rule.
 */
import type { ChargeGateway } from "@purser/core"
import { PipelineOptions, retryPolicy } from "@purser/engine"
import { type Origin, StripeClient, type StripeConfigError, StripeGateway, StripeOrigin } from "@purser/stripe"
import type { SimRequest } from "@purser/stripe-sim"
import { type Context, Effect, Layer, Redacted, type Scope } from "effect"
import type { Process } from "./Process.ts"
import type { Shared } from "./Worker.ts"

/** Whose requests these are, and who is told of them. */
export interface Sender {
  readonly processOf: () => Process
  /** As a call leaves the process. */
  readonly onCall?: ((method: string, path: string) => Effect.Effect<void>) | undefined
  /** A PaymentIntent was made, as the answer tells. */
  readonly onIntent?: ((body: string) => void) | undefined
}

const originOf = ({ kernel, sim, storm }: Shared, { onCall, onIntent, processOf }: Sender): Origin => ({
  close: () => {},
  send: ({ body, headers, method, path }, onEnd) => {
    const process = processOf()
    const failed = (code: string, detail: string) => onEnd({ failure: { code, status: null, headers: {}, detail } })
    const request: SimRequest = {
      method: method as SimRequest["method"],
      path,
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)])),
      body
    }
    const call = Effect.sleep(process.latencyMs()).pipe(
      Effect.andThen(process.pass),
      Effect.andThen(onCall?.(method, path) ?? Effect.void),
      Effect.andThen(Effect.suspend(() => storm.stripeIsAway() ? Effect.as(Effect.sleep(50), undefined) : sim.send(request))),
      Effect.tap(() => process.pass),
      Effect.matchCause({
        onSuccess: (answer) => {
          if (answer === undefined) return failed("ECONNREFUSED", "connection refused")
          if (method === "POST" && path === "/v1/payment_intents" && answer.status === 200) onIntent?.(answer.body)
          storm.tell(process.name, `${method} ${path} ${request.headers?.["idempotency-key"] ?? ""}`, answer.status)
          onEnd({ answer })
        },
        onFailure: () => {
          storm.tell(process.name, `${method} ${path} is lost`)
          failed("ECONNRESET", "the connection was lost")
        }
      })
    )
    const fiber = Effect.runForkWith(kernel.context)(call)
    return () => fiber.interruptUnsafe()
  }
})

/** What a process uses of Stripe, on a client of its own. The SDK is loaded while the world's time stands still. */
export const stripeOf = <A>(
  shared: Shared,
  sender: Sender,
  layers: (gateway: Layer.Layer<ChargeGateway, StripeConfigError, StripeClient>) => Layer.Layer<A, StripeConfigError, StripeClient>
): Effect.Effect<Context.Context<A>, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { kernel, scenario } = shared
    kernel.loading += 1
    const built = yield* Layer.build(layers(StripeGateway.layerNamed(scenario.gateway, { paymentMethodTypes: ["card", "us_bank_account"] })).pipe(
      Layer.provide(StripeClient.layer({ key: Redacted.make("rk_test_simulation"), url: "http://127.0.0.1:9", timeout: "30 seconds" })),
      Layer.provide(Layer.succeed(StripeOrigin, () => originOf(shared, sender)))
    ))
    kernel.loading -= 1
    return built
  }).pipe(Effect.orDie)

/** The settings of a process. */
export const optionsOf = ({ backup, scenario }: Shared, process: Process) =>
  PipelineOptions.layer({
    worker: process.name,
    retry: retryPolicy({ attemptsMax: 4, backoffMs: 250, backoffMaxMs: 8000 }),
    handBackMs: 5000,
    pollMs: scenario.beside.hooks?.pollMs ?? 300_000,
    outageAfter: scenario.outageAfter,
    restorePointMs: backup?.restorePointMs
  })
