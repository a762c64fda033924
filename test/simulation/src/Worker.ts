/**
 * The workers of a world: the engine's real pipeline, sweeper and worker on the real Stripe client, each life in a process
 * that can be killed, frozen, or told to stop. A slot keeps its Stripe client over its lives, as the SDK is slow to build.
 */
import {
  ChargeGateway, ChargePause, ChargeServer, FaultPoint, type FaultHook, Ledger, SpendCap
} from "@purser/core"
import { ChargePipeline, ChargeWorker, Sweeper } from "@purser/engine"
import type { StripeSimShape } from "@purser/stripe-sim"
import { Context, Effect, Layer, type Scope } from "effect"
import type { Kernel } from "./Kernel.ts"
import type { Mutant, Tools } from "./Mutant.ts"
import type { Network } from "./Network.ts"
import type { Process } from "./Process.ts"
import type { Backup } from "./Restored.ts"
import type { Scenario } from "./Scenario.ts"
import { Slot } from "./Slot.ts"
import { capOf, ledgerOf } from "./Store.ts"
import { forkIn, type Storm } from "./Storm.ts"
import { optionsOf, stripeOf } from "./Way.ts"

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
  /** Where the store goes back. */
  readonly backup: Backup | undefined
  /** A person has all that was declined tried again. */
  readonly retryByPerson: (paymentMethod: string | null) => Effect.Effect<void>
}

/** One worker's place. */
export class Worker extends Slot {
  private gateway: ChargeGateway["Service"] | undefined
  private readonly shared: Shared

  constructor(name: string, shared: Shared) {
    super(name, shared.kernel, shared.scenario.seed)
    this.shared = shared
  }

  /** Builds what outlives a life. */
  readonly prepare: Effect.Effect<void, never, Scope.Scope> = Effect.suspend(() =>
    stripeOf(this.shared, { processOf: () => this.process, onIntent: (body) => this.afterIntent(body) }, (gateway) => gateway)).pipe(
      Effect.map((built) => {
        const { mutant, tools } = this.shared
        const gateway = Context.get(built, ChargeGateway)
        this.gateway = mutant?.gateway?.(gateway, tools) ?? gateway
      })
    )

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
    const { cap, ledger, mutant, network, pause, scenario, storm, tools } = this.shared
    const server = network.server(process)
    const engine = ChargeWorker.layerNoDeps.pipe(
      Layer.provide(Sweeper.layerNoDeps),
      Layer.provide(ChargePipeline.layer),
      Layer.provide(Layer.mergeAll(
        Layer.succeed(Ledger, ledgerOf(process, storm, ledger, scenario.oneStore ? { cap, saysRoomAnyway: mutant?.saysRoomAnyway === true } : undefined)),
        Layer.succeed(SpendCap, capOf(process, storm, cap, { isSameStore: scenario.oneStore, takesUndoneForDone: mutant?.takesUndoneForDone === true })),
        Layer.succeed(ChargeGateway, this.gateway!),
        Layer.succeed(ChargePause, pause),
        Layer.succeed(FaultPoint, this.place),
        Layer.succeed(ChargeServer, { serve: (handler) => server.serve(mutant?.handler?.(handler, tools) ?? handler) })
      )),
      Layer.provide(optionsOf(this.shared, process))
    )
    return Effect.flatMap(Layer.buildWithScope(engine, scope), (built) => Effect.forkIn(Context.get(built, ChargeWorker).run, scope))
  }
}

/** The workers of a world. */
export const makeWorkers = Effect.fnUntraced(function*(shared: Shared) {
  const workers = Array.from({ length: shared.scenario.workers }, (_, index) => new Worker(`worker-${index}`, shared))
  yield* Effect.forEach(workers, (worker) => worker.prepare)
  return workers
})
