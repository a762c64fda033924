/**
 * The contract of the switch that stops all charging, in every process that shares the store: thrown by a person, or by a
 * worker that found the processor away. While it is off, work waits; nothing is refused and nothing is forgotten.
 *
 * It knows no processor and makes no call. A process acts on its own view, which follows the store's within a moment.
 */
import { Context, type Effect, Layer } from "effect"
import type { LedgerError } from "./LedgerError.ts"
import { makePauseMemory } from "./internal/pauseMemory.ts"

/** Whose pause it is: only a person ends a person's, while an outage ends by itself. */
export type PauseCause = "person" | "outage"

/** A pause in force. */
export interface Pause {
  readonly cause: PauseCause
  readonly actor: string
  readonly reason: string
  /** Milliseconds of the Unix epoch on the store's clock. */
  readonly sinceMs: number
}

/** One throw of the switch, for the record. */
export interface PauseAct {
  readonly cause: PauseCause
  readonly actor: string
  readonly reason: string
}

/** The switch. */
export class ChargePause extends Context.Service<ChargePause, {
  /** The pauses in force, as the store has them now. */
  readonly inForce: Effect.Effect<ReadonlyArray<Pause>, LedgerError>
  /** Stops charging; an equal pause that is in force stays as it is. Answers whether this act changed anything. */
  readonly pause: (act: PauseAct) => Effect.Effect<boolean, LedgerError>
  /** Ends a cause's pause; answers whether there was one. */
  readonly resume: (act: PauseAct) => Effect.Effect<boolean, LedgerError>
  /** Waits until this process knows of no pause. Before the store was read for the first time nothing is open. */
  readonly whenOpen: Effect.Effect<void>
  /** Whether `whenOpen` would not wait now; who cannot say lets everybody ask. */
  readonly isOpen?: () => boolean
  /** Waits until this process knows of a pause. */
  readonly whenPaused: Effect.Effect<void>
  /** Waits until this process knows of an outage. */
  readonly whenOutage: Effect.Effect<void>
  /** The pauses as this process sees them, without asking the store. */
  readonly view: Effect.Effect<ReadonlyArray<Pause>>
}>()("@purser/core/ChargePause") {
  /** A switch for this process alone. */
  static readonly layerMemory: Layer.Layer<ChargePause> = Layer.effect(ChargePause, makePauseMemory)
}
