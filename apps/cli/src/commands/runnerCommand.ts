/** The flags of `purser runner`. */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { refused } from "../CommandFailed.ts"
import { inTelemetry } from "./inTelemetry.ts"

/** `purser runner` */
export const runnerCommand = Command.make("runner", {
  workers: Flag.Int("workers").pipe(
    Flag.withDescription("Workers in this process (default: 1); 0 only dispatches to `purser worker` elsewhere"),
    Flag.withDefault(1)
  ),
  transport: Flag.Literals("transport", ["req-rep", "router-dealer", "push-pull", "pub-sub", "majordomo", "pair", "memory"]).pipe(
    Flag.withDescription("How requests travel to workers (default: PURSER_TRANSPORT, else req-rep)"),
    Flag.optional
  ),
  endpoint: Flag.String("endpoint").pipe(
    Flag.withDescription("With --workers 0: where workers, or the broker, are found (default: PURSER_ENDPOINT, else tcp://127.0.0.1:5555)"),
    Flag.optional
  )
}, Effect.fnUntraced(function*(given) {
  if (given.workers < 0 || given.workers > 64) return yield* refused("--workers must be from 0 to 64")
  const { runner } = yield* Effect.promise(() => import("../handlers/runner.ts"))
  return yield* inTelemetry("runner", runner({
    workers: given.workers, transport: Option.getOrUndefined(given.transport), endpoint: Option.getOrUndefined(given.endpoint)
  }))
})).pipe(
  Command.withDescription("Run billing runs, schedules and dunning that were handed over, until stopped; any number of runners share a PostgreSQL database"),
  Command.withExamples([
    { command: "PURSER_DATABASE_URL=postgres://… PURSER_RUNNER_HOST=10.0.0.5 PURSER_RUNNER_ALLOW_PLAIN=true purser runner", description: "One of several runners; the others reach it at this address, on a network of their own" }
  ])
)
