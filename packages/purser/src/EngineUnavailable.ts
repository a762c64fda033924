/** The workflow engine of a process did not start. */
import { troubleWords } from "@purser/engine"
import { Cause, type Config, Effect, Layer, Schema } from "effect"
import { settingProblem } from "./SettingProblem.ts"

/** The workflow engine could not start: its tables cannot be made, its address is taken, or a setting forbids it. Nothing was begun by it; a charge needs no engine. */
export class EngineUnavailable extends Schema.TaggedError<EngineUnavailable>("@purser/purser/EngineUnavailable")("EngineUnavailable", {
  detail: Schema.String,
  isRetryable: Schema.Boolean
}) {
  override get message() {
    return `the workflow engine did not start: ${this.detail}`
  }
  get outcome() {
    return "not_charged" as const
  }
}

/** Errors of the libraries below, also where they make defects of them. A bug of ours bears none of these names. */
const troubles = new Set(["SqlError", "MigrationError", "SocketServerError"])
const isTrouble = (error: unknown): boolean => typeof error === "object" && error !== null && "_tag" in error && troubles.has(String(error._tag))

/** What of the engine's own start failed, in words. */
export const orEngineUnavailable = (what: string) => <A, E, R>(
  layer: Layer.Layer<A, E, R>
): Layer.Layer<A, EngineUnavailable | Extract<E, Config.ConfigError>, R> =>
  Layer.catchCause(layer, (cause) => {
    const error = Cause.squash(cause)
    return Layer.effectContext(Effect.suspend(() => isTrouble(error)
      ? Effect.fail(new EngineUnavailable({ detail: `${what}: ${troubleWords(error)}`, isRetryable: true }))
      : Effect.failCause(cause as Cause.Cause<EngineUnavailable | Extract<E, Config.ConfigError>>)))
  })

/** The start of a host's engine, which the host was given the settings of. */
export const engineStartFailure = (error: Config.ConfigError | EngineUnavailable): EngineUnavailable =>
  error instanceof EngineUnavailable ? error : new EngineUnavailable({ detail: settingProblem(error), isRetryable: false })
