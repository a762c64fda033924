/**
 * A process that has billing runs in hand, a runner's or a command's: the engine's real dispatch behind a connection to the store that
 * fails, and places at which it is killed or stands still, before and after everything that it does to the world.
 */
import {
  ChargeClient, ChargePause, LedgerError, LedgerUnavailable, RunLedger, RunMark, type RunRecord, RunRegistry, RunStash, SpendCap
} from "@purser/core"
import { BillingRun } from "@purser/engine"
import { Effect, Layer } from "effect"
import { gated } from "./DurableEngine.ts"
import type { Kernel } from "./Kernel.ts"
import type { Mutant, Tools } from "./Mutant.ts"
import type { Network } from "./Network.ts"
import type { Process } from "./Process.ts"
import type { Scenario } from "./Scenario.ts"
import { Slot } from "./Slot.ts"
import { capOf, struck } from "./Store.ts"
import type { Storm } from "./Storm.ts"

/** What all holders of one world share. */
export interface RunShared {
  readonly kernel: Kernel
  readonly storm: Storm
  readonly scenario: Scenario
  readonly network: Network
  readonly cap: SpendCap["Service"]
  readonly pause: ChargePause["Service"]
  readonly book: RunLedger["Service"]
  readonly register: RunRegistry["Service"]
  readonly stash: RunStash["Service"]
  readonly mutant: Mutant | undefined
  readonly tools: Tools
  readonly violations: Array<string>
}

/** Why the store answers nothing. */
export const unavailable = (operation: string) => new LedgerError({ reason: new LedgerUnavailable({ operation, detail: "the connection was lost" }), chargeKey: null })

/** How often a holder looks whether people have said something; what it was told a little longer ago than that binds it. */
const lookMs = 1000
const slackMs = 100

/**
 * What one life was told about its run. To send a row it needs to have been told within the time of its looks that the run goes on, or to
 * have a look under way, or one that failed: a register that cannot be read stops nothing.
 */
class Heard {
  private goesOnMs = Number.NEGATIVE_INFINITY
  private stopped: string | undefined
  private asking = 0

  readonly look = (kernel: Kernel) => (call: Effect.Effect<RunRecord | undefined, LedgerError>): Effect.Effect<RunRecord | undefined, LedgerError> =>
    Effect.suspend(() => {
      this.asking += 1
      return Effect.onExit(call, (exit) => Effect.sync(() => {
        this.asking -= 1
        const state = exit._tag === "Success" ? exit.value?.state : undefined
        const isHeld = state === "paused" || state === "canceling" || state === "canceled"
        if (isHeld) this.stopped = state
        else {
          this.goesOnMs = kernel.nowMs
          if (exit._tag === "Success") this.stopped = undefined
        }
      }))
    })

  /** The state that forbids it to send now. */
  forbids(nowMs: number): string | undefined {
    return this.asking === 0 && this.goesOnMs + lookMs + slackMs < nowMs ? this.stopped : undefined
  }
}

/** A place for processes with runs in hand. */
export abstract class RunHolder extends Slot {
  protected readonly shared: RunShared

  constructor(name: string, shared: RunShared) {
    super(name, shared.kernel, shared.scenario.seed)
    this.shared = shared
  }

  /** Something that the process does to the world; it may be its last, before or after. */
  protected readonly act = (process: Process) => <A, E>(call: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      const fault = this.shared.storm.atRunner()
      if (fault === undefined) return process.outside(call)
      const strike = Effect.sync(() => {
        this.shared.storm.tell(process.name, `${fault.how} ${fault.when} an act`)
        if (this.process === process) this[fault.how](fault.forMs)
      })
      return fault.when === "before" ? Effect.andThen(strike, process.outside(call)) : process.outside(Effect.onExit(call, () => strike))
    })

  /** The services of a life with a run in hand. */
  protected hands(process: Process) {
    const { book, cap, kernel, mutant, network, pause, register, stash, storm, tools, violations } = this.shared
    const reach = (operation: string, call: Effect.Effect<any, any>) =>
      this.act(process)(struck(storm, process.name, `run ${operation}`, unavailable(operation), "runs")(call))
    const heard = new Map<string, Heard>()
    const heardOf = (run: string) => {
      const found = heard.get(run) ?? new Heard()
      heard.set(run, found)
      return found
    }
    const reached = gated(register, reach)
    const registry: RunRegistry["Service"] = { ...reached, find: (run) => heardOf(run).look(kernel)(reached.find(run)) }
    const client = network.client(0)
    const submit: ChargeClient["Service"]["submit"] = (request) =>
      Effect.suspend(() => {
        const run = RunMark.of(request)
        const state = run === undefined ? undefined : heardOf(run).forbids(kernel.nowMs)
        if (state !== undefined) violations.push(`${process.name} was told that ${run} is ${state}, and sends ${request.customerId} ${request.item ?? "-"} all the same`)
        storm.tell(process.name, `sends ${request.customerId} ${request.item ?? "-"}`)
        return this.act(process)(client.submit(request))
      })
    const stores = Layer.mergeAll(
      Layer.succeed(RunRegistry, mutant?.register?.(registry, tools, process.name) ?? registry),
      Layer.succeed(RunLedger, mutant?.book?.(gated(book, reach), tools, process.name) ?? gated(book, reach)),
      Layer.succeed(RunStash, gated(stash, reach)),
      Layer.succeed(SpendCap, capOf(process, storm, cap, { isSameStore: false, takesUndoneForDone: false })),
      Layer.succeed(ChargeClient, mutant?.sender?.({ submit }, tools, process.name) ?? { submit }),
      Layer.succeed(ChargePause, pause)
    )
    return BillingRun.layer.pipe(Layer.provideMerge(stores))
  }
}
