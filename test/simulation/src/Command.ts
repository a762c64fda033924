/** A command that has a run in hand: planned and dispatched in its own process. Killed, it leaves the rest to the same command's next run. */
import type { RunRow } from "@purser/core"
import { BillingRun, type CapDecision, CommandRun, openRows, type RunCheck, type RunError } from "@purser/engine"
import { type Context, Effect, Layer, type Scope, Stream } from "effect"
import type { Process } from "./Process.ts"
import { RunHolder, type RunShared } from "./RunHolder.ts"
import { neverSettled } from "./RunTruth.ts"

/** After which a person who was told that something is left starts the command again. */
const restMs = 5 * 60_000
const digest = "the file's digest"

/** Where the commands of a world run: which processes there are, by number. */
export class Host {
  private readonly processes: Array<Process> = []
  readonly enter = (process: Process): number => this.processes.push(process) - 1
  /** As the system knows it: one that stands still is there. */
  readonly isGone = (pid: number): boolean => this.processes[pid]?.dead !== false
}

/** What a command reads, and how it ended. */
export interface CommandInput {
  readonly host: Host
  readonly rows: ReadonlyArray<RunRow>
  readonly decide: (check: RunCheck) => Effect.Effect<ReadonlyArray<CapDecision>>
  readonly concurrency: number
  readonly once: boolean
  readonly ledger: Parameters<typeof neverSettled>[1]
}

/** Somebody's shell, in which the command is started again until it has come to its end. */
export class Command extends RunHolder {
  /** How the last life ended by itself. */
  ended: "done" | "canceled" | "refused" | undefined
  private readonly input: CommandInput

  constructor(name: string, shared: RunShared, input: CommandInput) {
    super(name, shared)
    this.input = input
  }

  override start() {
    // Who was told that it is done, or canceled, does not start it again; that it is in other hands does not last. A bystander tries once.
    if (this.ended === "done" || this.ended === "canceled" || (this.input.once && this.lives > 0)) return
    super.start()
  }

  /** Has it started again though it had ended. */
  again() {
    this.ended = undefined
    this.start()
  }

  protected begin(process: Process, scope: Scope.Closeable) {
    const { book, violations } = this.shared
    const { concurrency, decide, host, ledger, rows } = this.input
    const runId = process.name
    const pid = host.enter(process)
    const wish = {
      runId, source: "/in/rows.csv", actor: "a person", worker: process.name, digest, process: { host: "here", pid },
      isGone: (one: { readonly pid: number }) => Effect.sync(() => host.isGone(one.pid))
    }
    const work = Effect.gen(function*() {
      const hand = yield* CommandRun
      yield* hand.free(wish)
      yield* (yield* BillingRun).plan({ runId, source: wish.source, rows: Stream.succeed(rows), decide, overCap: "fits" })
      const end = yield* hand.registered(wish, hand.dispatch({ runId, concurrency }, () => Effect.void), () => false)
      if (end.canceled !== null) return "canceled" as const
      if (openRows(end.summary) > 0) return undefined
      const open = yield* neverSettled(book, ledger, runId)
      if (open.length > 0) violations.push(`run ${runId} says finished to its person, and ${open.length} of its rows are open`)
      return "done" as const
    }).pipe(
      Effect.catchIf((error): error is RunError => error._tag === "RunError" && error.reason._tag === "SourceInHand", () => Effect.succeed("refused" as const)),
      Effect.flatMap((ended) => Effect.sync(() => {
        this.ended = ended
      })),
      // Its process is gone with it, however it ended; its person starts it again.
      Effect.ensuring(Effect.sync(() => {
        if (!process.dead) this.kill(restMs)
      }))
    )
    return Effect.flatMap(Layer.buildWithScope(CommandRun.layer.pipe(Layer.provideMerge(this.hands(process))), scope), (built) =>
      Effect.forkIn(Effect.provide(work, built as Context.Context<CommandRun | BillingRun>), scope))
  }
}
