/**
 * Fault points for real processes: with `PURSER_FAULT=after-confirm:3` the process kills itself with SIGKILL when it
 * passes that place for the third time. Programs under test provide this layer; published programs never do.
 */
import { FaultPoint, faultPlaces, type FaultHook, refundFaultPlaces } from "@purser/core"
import { Config, Effect, Layer, Schema } from "effect"

const Plan = Schema.String.pipe(
  Schema.check(Schema.isPattern(new RegExp(`^(?:${[...faultPlaces, ...refundFaultPlaces].join("|")}):[1-9][0-9]*$`), { message: "expected PLACE:COUNT" }))
)

/** Layers that arm fault points. */
export const FaultPoints = {
  /** Armed by `PURSER_FAULT`; without it nothing happens. */
  layerFromEnv: Layer.effect(
    FaultPoint,
    Effect.gen(function*() {
      const plan = yield* Config.schema(Plan, "PURSER_FAULT").pipe(Config.withDefault(""))
      if (plan === "") return (() => Effect.void) as FaultHook
      const [place, count] = plan.split(":")
      let left = Number(count)
      return ((at) =>
        Effect.sync(() => {
          if (at === place && --left === 0) process.kill(process.pid, "SIGKILL")
        })) as FaultHook
    })
  )
}
