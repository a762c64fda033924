/**
 * The workers of a world: the engine's real pipeline, sweeper and worker on the real Stripe client, each life in a process
 * that can be killed, frozen, or told to stop. A slot keeps its Stripe client over its lives, as the SDK is slow to build.
 */
import {
  ChargeGateway, ChargePause, ChargeServer, FaultPoint, type FaultHook, Ledger, SpendCap
} from "@purser/core"
import { ChargePipeline, ChargeWorker, PipelineOptions, retryPolicy, Sweeper } from "@purser/engine"
import { type Origin, StripeClient, StripeGateway, StripeOrigin } from "@purser/stripe"
import type { SimRequest, StripeSimShape } from "@purser/stripe-sim"
import { Context, Effect, Layer, Redacted, type Scope } from "effect"
import { audit } from "./Auditor.ts"
import type { Kernel } from "./Kernel.ts"
import type { Mutant, Tools } from "./Mutant.ts"
import type { Network } from "./Network.ts"
import type { Process } from "./Process.ts"
import type { Scenario } from "./Scenario.ts"
import { Slot } from "./Slot.ts"
import { capOf, ledgerOf } from "./Store.ts"
import { forkIn, type Storm } from "./Storm.ts"

/** What the lives of one world share. */
export interface Shared {
  readonly kernel: Kernel
  readonly storm: Storm
  readonly scenario: Scenario
  readonly network: Network
  readonly sim: StripeSimShape
  readonly ledger: Ledger["Service"]
  readonly cap: SpendCap["Service"]
  readonly pause: ChargePause["Service"]
  readonly mutant: Mutant | undefined
  readonly tools: Tools
  readonly violations: Array<string>
  /** A person has all that was declined tried again. */
  readonly retryByPerson: (paymentMethod: string | null) => Effect.Effect<void>
}

/** One worker's place. */
export class Worker extends Slot {
  private gateway: ChargeGateway["Service"] | undefined
  private readonly shared: Shared
  /** The ledger that all lives of all workers write to, with its bugs and its auditor. */
  private readonly ledger: Ledger["Service"]
  private readonly cap: SpendCap["Service"]

  constructor(name: string, shared: Shared, ledger: Ledger["Service"], cap: SpendCap["Service"]) {
    super(name, shared.kernel, shared.scenario.seed)
    this.shared = shared
    this.ledger = ledger
    this.cap = cap
  }

  /** Builds what outlives a life. */
  readonly prepare: Effect.Effect<void, never, Scope.Scope> = Effect.gen({ self: this }, function*() {
    const { mutant, scenario, tools } = this.shared
    const stripe = StripeGateway.layerNamed(scenario.gateway, { paymentMethodTypes: ["card", "us_bank_account"] }).pipe(
      Layer.provide(StripeClient.layer({ key: Redacted.make("rk_test_simulation"), url: "http://127.0.0.1:9", timeout: "30 seconds" })),
      Layer.provide(Layer.succeed(StripeOrigin, () => this.origin))
    )
    const { kernel } = this.shared
    kernel.loading += 1
    const gateway = Context.get(yield* Layer.build(stripe), ChargeGateway)
    kernel.loading -= 1
    this.gateway = mutant?.gateway?.(gateway, tools) ?? gateway
  }).pipe(Effect.orDie)

  /** Where the client's requests leave: into the simulated Stripe, if the process is awake and Stripe can be reached. */
  private readonly origin: Origin = {
    close: () => {},
    send: ({ body, headers, method, path }, signal, onEnd) => {
      const { kernel, sim, storm } = this.shared
      const { process } = this
      const failed = (code: string, detail: string) => onEnd({ failure: { code, status: null, headers: {}, detail } })
      const request: SimRequest = {
        method: method as SimRequest["method"],
        path,
        headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)])),
        body
      }
      const call = Effect.sleep(process.latencyMs()).pipe(
        Effect.andThen(process.pass),
        Effect.andThen(Effect.suspend(() => storm.stripeIsAway() ? Effect.as(Effect.sleep(50), undefined) : sim.send(request))),
        Effect.tap(() => process.pass),
        Effect.matchCause({
          onSuccess: (answer) => {
            if (answer === undefined) return failed("ECONNREFUSED", "connection refused")
            if (method === "POST" && path === "/v1/payment_intents" && answer.status === 200) this.afterIntent(answer.body)
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
      signal.addEventListener("abort", () => fiber.interruptUnsafe())
    }
  }

  /** A person cancels an object in the Dashboard, some time after it was made. */
  private afterIntent(body: string) {
    const { kernel, sim, storm } = this.shared
    const fault = storm.atIntent()
    if (fault === undefined) return
    const { id }: { readonly id: string } = JSON.parse(body)
    const cancel = sim.send({ method: "POST", path: `/v1/payment_intents/${id}/cancel`, headers: { authorization: "Bearer sk_test_person" } })
    forkIn(kernel, Effect.ignore(Effect.delay(cancel, fault.afterMs)))
  }

  private readonly place: FaultHook = (place) =>
    Effect.suspend(() => {
      const { process } = this
      const fault = this.shared.storm.atPlace(place)
      if (fault !== undefined) this.shared.storm.tell(process.name, `${fault.kind} at ${place}`)
      if (fault?.kind === "kill") this.kill(fault.downMs)
      if (fault?.kind === "freeze") {
        this.freeze(fault.forMs)
        const { retried } = fault
        if (retried !== undefined) forkIn(this.shared.kernel, Effect.delay(this.shared.retryByPerson(retried.paymentMethod), retried.afterMs))
      }
      return process.pass
    })

  protected begin(process: Process, scope: Scope.Closeable) {
    const { mutant, network, pause, scenario, storm, tools } = this.shared
    const server = network.server(process)
    const engine = ChargeWorker.layerNoDeps.pipe(
      Layer.provide(Sweeper.layerNoDeps),
      Layer.provide(ChargePipeline.layer),
      Layer.provide(Layer.mergeAll(
        Layer.succeed(Ledger, ledgerOf(process, storm, this.ledger, scenario.oneStore ? { cap: this.cap, saysRoomAnyway: mutant?.saysRoomAnyway === true } : undefined)),
        Layer.succeed(SpendCap, capOf(process, storm, this.cap, { isSameStore: scenario.oneStore, takesUndoneForDone: mutant?.takesUndoneForDone === true })),
        Layer.succeed(ChargeGateway, this.gateway!),
        Layer.succeed(ChargePause, pause),
        Layer.succeed(FaultPoint, this.place),
        Layer.succeed(ChargeServer, { serve: (handler) => server.serve(mutant?.handler?.(handler, tools) ?? handler) })
      )),
      Layer.provide(PipelineOptions.layer({
        worker: process.name,
        retry: retryPolicy({ attemptsMax: 4, backoffMs: 250, backoffMaxMs: 8000 }),
        handBackMs: 5000,
        pollMs: 300_000,
        outageAfter: scenario.outageAfter
      }))
    )
    return Effect.flatMap(Layer.buildWithScope(engine, scope), (built) => Effect.forkIn(Context.get(built, ChargeWorker).run, scope))
  }
}

/** The workers of a world; the ledger's bugs and its auditor are between them and the store. */
export const makeWorkers = Effect.fnUntraced(function*(shared: Shared) {
  const { mutant, scenario, tools, violations } = shared
  const ledger = audit(mutant?.ledger?.(tools) ?? shared.ledger, violations)
  const cap = mutant?.cap?.(tools) ?? shared.cap
  const workers = Array.from({ length: scenario.workers }, (_, index) => new Worker(`worker-${index}`, shared, ledger, cap))
  yield* Effect.forEach(workers, (worker) => worker.prepare)
  return workers
})
