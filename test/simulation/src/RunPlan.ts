/** What a seed says about the billing run of its world: who brings the rows to the workers, and what goes wrong with that. */
import type { Rng } from "./Rng.ts"
import { rngOf } from "./Rng.ts"

/**
 * How the rows of a planned world come to the workers. `dispatch`: by the bare dispatch, which whoever started it starts again. `workflow`:
 * by the durable workflow, on two runners. `command`: by commands of which the next goes on where the last was killed.
 */
export interface RunPlan {
  readonly by: "dispatch" | "workflow" | "command"
  /** Rows are made by a definition that the workflow reads; else they are planned where the run is handed over. */
  readonly defined: boolean
  /** Nobody else asks for these charges. */
  readonly alone: boolean
  readonly concurrency: number
  /** Whoever started the run goes on with it after it was canceled. */
  readonly goesOn: boolean
}

/** What goes wrong with a run, or is said about it. `nth` counts what holders of runs do to the world. */
export type RunFault =
  | { readonly kind: "runner"; readonly nth: number; readonly when: "before" | "after"; readonly how: "kill" | "freeze"; readonly forMs: number }
  | { readonly kind: "runnerAt"; readonly atMs: number; readonly runner: number; readonly how: "kill" | "freeze" | "stop"; readonly forMs: number }
  /** With `dies` the person's own process ends after so many calls, and nobody says it again. */
  | { readonly kind: "runAct"; readonly atMs: number; readonly act: "pause" | "resume" | "cancel"; readonly dies: number | undefined }
  /** Somebody starts the same command once more, beside the first. */
  | { readonly kind: "secondCommand"; readonly atMs: number }

/** The run of a world that plans its charges; the bare dispatch where its books are not kept. */
export const runPlanOf = (seed: string, isKept: boolean): RunPlan => {
  const rng = rngOf(seed).branch("run")
  const drawn = rng.pick(["dispatch", "workflow", "command"] as const)
  const by = isKept ? drawn : "dispatch"
  if (by === "dispatch") return { by, defined: false, alone: false, concurrency: 3, goesOn: false }
  return { by, defined: by === "workflow" && rng.chance(0.5), alone: rng.chance(0.6), concurrency: rng.pick([1, 2, 4]), goesOn: rng.chance(0.5) }
}

/** Runs of few rows are over in a second where nothing goes wrong. */
const timeOf = (rng: Rng) => rng.between(0, rng.pick([500, 500, 3000, 60_000, 5 * 60_000]))

const faultOf = (rng: Rng, by: RunPlan["by"]): RunFault => {
  const forMs = rng.pick([1000, 20_000, 75_000, 3 * 60_000])
  switch (rng.between(0, 9)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return { kind: "runner", nth: rng.between(1, rng.pick([20, 90])), when: rng.pick(["before", "after"] as const), how: rng.pick(["kill", "freeze"] as const), forMs }
    case 4:
    case 5:
      return { kind: "runnerAt", atMs: timeOf(rng), runner: rng.between(0, 1), how: rng.pick(["kill", "freeze", "stop"] as const), forMs }
    case 6:
      if (by === "command") return { kind: "secondCommand", atMs: timeOf(rng) }
      return { kind: "runAct", atMs: timeOf(rng), act: "resume", dies: undefined }
    default:
      return { kind: "runAct", atMs: timeOf(rng), act: rng.pick(["pause", "pause", "cancel"] as const), dies: rng.chance(0.25) ? rng.between(1, 4) : undefined }
  }
}

/** What goes wrong with it. */
export const runFaultsOf = (seed: string, { by }: RunPlan): ReadonlyArray<RunFault> => {
  const rng = rngOf(seed).branch("run faults")
  return by === "dispatch" ? [] : Array.from({ length: rng.between(0, 4) }, () => faultOf(rng, by))
}
