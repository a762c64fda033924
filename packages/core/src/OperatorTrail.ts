/**
 * The contract of the trail of what people did: acts at a console, and the history of caps and of the switch that stops
 * charging. It is append-only, and decides nothing.
 */
import { Context, type Effect } from "effect"
import type { LedgerError } from "./LedgerError.ts"

/** Something that a person did. */
export interface OperatorAct {
  readonly actor: string
  /** In a word or two, for example `pause`, `raise cap`. */
  readonly act: string
  /** What it was done to: a charge key, a cap, a digest. */
  readonly subject: string
  readonly reason: string
  readonly detail: string | null
}

/** An act of the trail. */
export interface NotedAct extends OperatorAct {
  readonly position: number
  readonly atMs: number
}

/** One line of a cap's history. Figures in minor units. */
export interface CapEvent {
  readonly position: number
  readonly atMs: number
  readonly namespace: string
  readonly billingPeriod: string
  readonly currency: string
  readonly act: "opened" | "raised" | "closed" | "reopened" | "forced"
  readonly expectedMinor: bigint | null
  readonly headroomPercent: number | null
  readonly capMinor: bigint
  readonly chargeKey: string | null
  readonly actor: string | null
  readonly reason: string | null
}

/** One throw of the switch. */
export interface PauseEvent {
  readonly position: number
  readonly atMs: number
  readonly cause: string
  readonly act: "paused" | "resumed"
  readonly actor: string
  readonly reason: string
}

/** The trail. Every method needs nothing and fails with `LedgerError` only. */
export class OperatorTrail extends Context.Service<OperatorTrail, {
  /** Writes an act down. */
  readonly note: (act: OperatorAct) => Effect.Effect<void, LedgerError>
  /** The acts before a position, the newest first; all of them for null. */
  readonly acts: (before: number | null, limit: number) => Effect.Effect<ReadonlyArray<NotedAct>, LedgerError>
  /** The acts on one subject, the newest first. */
  readonly actsOn: (subject: string, limit: number) => Effect.Effect<ReadonlyArray<NotedAct>, LedgerError>
  /** The history of the caps of a period, or of all, the newest first. */
  readonly capEvents: (billingPeriod: string | undefined, limit: number) => Effect.Effect<ReadonlyArray<CapEvent>, LedgerError>
  /** The last throws of the switch, the newest first. */
  readonly pauseEvents: (limit: number) => Effect.Effect<ReadonlyArray<PauseEvent>, LedgerError>
}>()("@purser/core/OperatorTrail") {}
