/**
 * A place at which processes live one after the other: a worker's, a runner's, a command's. A life is killed, frozen or told to stop,
 * and another one begins after a while.
 */
import { Effect, Exit, Scope } from "effect"
import type { Kernel } from "./Kernel.ts"
import { Process } from "./Process.ts"
import { rngOf } from "./Rng.ts"
import { forkIn } from "./Storm.ts"

/** One place: its present life, and how another one begins. */
export abstract class Slot {
  readonly name: string
  process: Process
  protected lives = 0
  private downUntilMs = 0
  private scope: Scope.Closeable | undefined
  private readonly kernel: Kernel
  private readonly seed: string

  constructor(name: string, kernel: Kernel, seed: string) {
    this.name = name
    this.kernel = kernel
    this.seed = seed
    this.process = new Process(name, rngOf(`${seed}/${name}`))
    this.process.dead = true
  }

  /** Begins what a life does; it ends with the scope. */
  protected abstract begin(process: Process, scope: Scope.Closeable): Effect.Effect<unknown, unknown>

  /** How long a life that was told to stop may take. */
  protected readonly stopMs: number = 10

  /** Begins a life, unless one lasts, or it is night. */
  start() {
    if (!this.process.dead || this.kernel.nowMs < this.downUntilMs) return
    const life = `${this.name}.${++this.lives}`
    const process = this.process = new Process(life, rngOf(`${this.seed}/${life}`))
    const scope = this.scope = Scope.makeUnsafe()
    forkIn(this.kernel, Effect.ignoreCause(this.begin(process, scope)))
  }

  private end() {
    const { scope } = this
    this.scope = undefined
    if (scope !== undefined) forkIn(this.kernel, Effect.ignoreCause(Scope.close(scope, Exit.void)))
  }

  /** The process dies at once and leaves everything as it is. */
  kill(downMs: number) {
    this.startAfter(downMs)
    if (this.process.dead) return
    this.process.kill()
    this.end()
  }

  /** The process is told to stop, hands back what it holds, and is gone. */
  stop(downMs: number) {
    const { process } = this
    if (process.dead) return
    this.end()
    forkIn(this.kernel, Effect.andThen(Effect.sleep(this.stopMs), Effect.sync(() => {
      process.kill()
      this.startAfter(downMs)
    })))
  }

  /** The process stands still, and wakes with what it was about to do. */
  freeze(forMs: number) {
    const { process } = this
    process.freeze()
    forkIn(this.kernel, Effect.andThen(Effect.sleep(forMs), Effect.sync(() => process.wake())))
  }

  private startAfter(downMs: number) {
    this.downUntilMs = Math.max(this.downUntilMs, this.kernel.nowMs + downMs)
    forkIn(this.kernel, Effect.andThen(Effect.sleep(downMs), Effect.sync(() => this.start())))
  }
}
