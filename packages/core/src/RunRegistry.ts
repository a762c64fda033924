/**
 * The contract of the register of billing runs: which there are, by name, and how each stands. A name is given once, so that
 * two triggers start one run; every change of state is an act with a condition, and leaves an event.
 *
 * It holds no rows (see `RunLedger`) and decides nothing about charges: whoever dispatches looks here whether to go on.
 */
import { Context, type Effect, Layer, Schema } from "effect"
import { commandDefinition, goneOnWith } from "./internal/commandDefinition.ts"
import { makeRunRegistryMemory } from "./internal/runRegistryMemory.ts"
import type { LedgerError } from "./LedgerError.ts"
import type { RunStateTotal } from "./RunLedger.ts"

/**
 * `waiting`: no runner has begun. `planned`: the rows are in the ledger and none was sent. `paused`: nothing more is sent;
 * what was sent is settled. `canceling`: the same, for good, until all of that is settled. `interrupted`: the command that had it in
 * hand ended before it; what was sent is settled by others, and the same command goes on with the rest.
 */
export const RunState = Schema.Literals(["waiting", "planned", "running", "paused", "canceling", "canceled", "interrupted", "finished", "failed"])
export type RunState = typeof RunState.Type

/** States that only a further round leaves. */
export const isRunOver = (state: RunState): boolean => state === "canceled" || state === "interrupted" || state === "finished" || state === "failed"

export { commandDefinition, goneOnWith }

/** A run. Times in milliseconds of the Unix epoch, on the store's clock. */
export interface RunRecord {
  readonly runId: string
  readonly name: string
  readonly state: RunState
  /** By which definition rows are made, and what it is told. JSON. */
  readonly definition: string
  readonly params: unknown
  /** How it is dispatched and closed. JSON. */
  readonly options: unknown
  /** 1, and one more for every extension. */
  readonly round: number
  /** How often it was paused. */
  readonly pauses: number
  /** Who has it in work, or had it last. */
  readonly runner: string | null
  /** Which step it is at. */
  readonly step: string | null
  /** Why it failed, or what a person should know. */
  readonly detail: string | null
  /** Counts and sums as they were last counted; empty before. */
  readonly counted: ReadonlyArray<RunStateTotal>
  readonly actor: string
  readonly createdAtMs: number
  readonly startedAtMs: number | null
  readonly endedAtMs: number | null
  /**
   * Of a run in a command's hands whose process has not told the workers' book for twenty seconds that it lives, or has left it: when it
   * did so last. Null while it does, and for all other runs. A frozen process may come back, so that this is no state.
   */
  readonly lostSinceMs: number | null
}

/** How a run stands: its state, or `interrupted` while the command that has it in hand is lost. */
export const standingOf = ({ lostSinceMs, state }: Pick<RunRecord, "state" | "lostSinceMs">): RunState => lostSinceMs === null ? state : "interrupted"

/**
 * How runs stand for whoever watches all of them: those that are not over, and of those that are, what was interrupted or failed within
 * a day and nobody has gone on with. `abandoned`: runs of runners while none is heard of.
 */
export const runStandings = ["waiting", "planned", "running", "paused", "canceling", "interrupted", "failed", "abandoned"] as const
export type RunStanding = typeof runStandings[number]

/** A run that is to be. */
export interface NewRun {
  readonly runId: string
  readonly name: string
  readonly state: "waiting" | "planned" | "running"
  readonly definition: string
  readonly params: unknown
  readonly options: unknown
  readonly actor: string
  /** Who has it in hand from the beginning. */
  readonly runner?: string
  /** Of a run in a command's hands: what it reads, in short. Kept as `digest` with the params; of commands that live, one has a run of it in hand. */
  readonly digest?: string
}

/** A change of state, made only from one of `from`. */
export interface RunChange {
  readonly runId: string
  readonly from: ReadonlyArray<RunState>
  readonly to: RunState
  readonly actor: string
  readonly detail?: string | null
}

/** What a runner tells about a run that it has in work. What is left out stays. */
export interface RunNote {
  readonly runner?: string
  readonly step?: string
  readonly detail?: string | null
  readonly counted?: ReadonlyArray<RunStateTotal>
}

/** Something that happened to a run. */
export interface RunEvent {
  readonly atMs: number
  /** A state that it came to, `taken` by a runner, or `extended`. */
  readonly act: RunState | "taken" | "extended"
  readonly actor: string
  readonly detail: string | null
}

/** The register. Every method needs nothing and fails with `LedgerError` only. */
export class RunRegistry extends Context.Service<RunRegistry, {
  /** Registers a run, or answers the one that has the name, or that a living command has in hand with the same digest. */
  readonly register: (run: NewRun) => Effect.Effect<{ readonly run: RunRecord; readonly isNew: boolean }, LedgerError>
  /** A run by its name or its id. */
  readonly find: (nameOrId: string) => Effect.Effect<RunRecord | undefined, LedgerError>
  /** The newest runs first; all unless told, else those that stand so. */
  readonly list: (options: { readonly states?: ReadonlyArray<RunState>; readonly limit: number }) => Effect.Effect<ReadonlyArray<RunRecord>, LedgerError>
  /** How many runs stand how, each counted once; none is left out. */
  readonly standings: Effect.Effect<Readonly<Partial<Record<RunStanding, number>>>, LedgerError>
  /** Changes the state; undefined where it is none of those expected. */
  readonly change: (change: RunChange) => Effect.Effect<RunRecord | undefined, LedgerError>
  /** Opens a further round of a run that is over, with what its definition is told now; undefined while it is not over. */
  readonly extend: (input: { readonly runId: string; readonly params: unknown; readonly actor: string }) => Effect.Effect<RunRecord | undefined, LedgerError>
  /** Keeps what a runner tells; another runner than before leaves an event. */
  readonly note: (runId: string, note: RunNote) => Effect.Effect<void, LedgerError>
  /** What happened to a run, in order. */
  readonly events: (runId: string) => Effect.Effect<ReadonlyArray<RunEvent>, LedgerError>
}>()("@purser/core/RunRegistry") {
  /** A register in memory. */
  static readonly layerMemory: Layer.Layer<RunRegistry> = Layer.effect(RunRegistry, makeRunRegistryMemory)
}
