/** A runner: the engine's real workflow of runs on a durable engine of its own. */
import { layerRunTending, layerRunWorkflow, PipelineOptions, type RunDefinitions } from "@purser/engine"
import { Effect, Layer, type Scope } from "effect"
import { ClusterError, RunnerAddress } from "effect/cluster"
import { type EngineTables, engineOn, type Reach } from "./DurableEngine.ts"
import type { Process } from "./Process.ts"
import { RunHolder, type RunShared } from "./RunHolder.ts"
import { struck } from "./Store.ts"
import type { Storm } from "./Storm.ts"

/** How a process gets to the engine's tables, which are in the same store as all else. */
export const tablesFor = (process: Process, storm: Storm, act: <A, E>(call: Effect.Effect<A, E>) => Effect.Effect<A, E>): Reach => (operation, call, idle) => {
  const away = new ClusterError.PersistenceError({ cause: new Error("the connection was lost") })
  const asked = struck(storm, process.name, `engine ${operation}`, away, idle ? "idle" : "runs")(call)
  return idle ? process.idly(asked) : act(asked)
}

/** The processes that have, or had, an address in the cluster. */
export class Members {
  private readonly processes = new Map<string, Process>()

  readonly join = (process: Process): RunnerAddress.RunnerAddress => {
    const address = RunnerAddress.make("runner", this.processes.size + 1)
    this.processes.set(`${address.host}:${address.port}`, process)
    return address
  }

  readonly lives = (address: string): boolean => this.processes.get(address)?.dead === false

  /** Whether it answers: one that stands still does so when it is awake, or too late. */
  readonly answers = (address: string): Effect.Effect<boolean> =>
    Effect.suspend(() => {
      const process = this.processes.get(address)
      if (process === undefined || process.dead) return Effect.succeed(false)
      return Effect.map(Effect.timeoutOption(process.awakes, "2 seconds"), ({ _tag }) => _tag === "Some")
    })
}

/** What the runners of a world have in common. */
export interface RunnerParts {
  readonly tables: EngineTables
  readonly members: Members
  readonly definitions: Layer.Layer<RunDefinitions>
}

/** One runner's place. */
export class Runner extends RunHolder {
  /** Work is cut short for three seconds at most; then shards go to others. */
  protected override readonly stopMs = 4000
  private readonly parts: RunnerParts

  constructor(name: string, shared: RunShared, parts: RunnerParts) {
    super(name, shared)
    this.parts = parts
  }

  protected begin(process: Process, scope: Scope.Closeable) {
    const { definitions, members, tables } = this.parts
    const engine = engineOn(tables, tablesFor(process, this.shared.storm, this.act(process)), { address: members.join(process), isAlive: members.answers })
    const runs = Layer.mergeAll(layerRunWorkflow, layerRunTending).pipe(
      Layer.provide(engine),
      Layer.provide(this.hands(process)),
      Layer.provide(definitions),
      Layer.provide(PipelineOptions.layer({ worker: process.name }))
    )
    return Layer.buildWithScope(runs, scope)
  }
}
