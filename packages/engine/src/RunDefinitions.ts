/** The definitions of runs that a process knows, by name. It makes none (see `RunDefinition`). */
import { Context, Effect, Layer } from "effect"
import type { ClosedDefinition, RunDefinition } from "./RunDefinition.ts"

/** The definitions that a process knows. All runners of a database know the same ones. */
export class RunDefinitions extends Context.Service<RunDefinitions, {
  readonly find: (name: string) => ClosedDefinition | undefined
}>()("@purser/engine/RunDefinitions") {
  /** These definitions; what they need is taken where the layer is built. */
  static readonly layer = <const D extends ReadonlyArray<RunDefinition<never>> | ReadonlyArray<RunDefinition<any>>>(
    ...definitions: D
  ): Layer.Layer<RunDefinitions, never, D[number] extends RunDefinition<infer R> ? R : never> =>
    Layer.effect(
      RunDefinitions,
      Effect.map(Effect.all(definitions.map(({ close }) => close)), (closed) => {
        const byName = new Map(closed.map((one) => [one.name, one]))
        return RunDefinitions.of({ find: (name) => byName.get(name) })
      })
    )
}
