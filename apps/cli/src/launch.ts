/**
 * Runs the command as a process. Being stopped is the proper end of a command that serves, so that a supervisor sees
 * status 0; of every other command it is status 130.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Cause, Effect, Exit, Runtime } from "effect"
import { Stopping } from "./Stopping.ts"

/** Serves until stopped, and calls that a success. */
export const serving = <A, E, R>(serve: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Stopping, (stopping) => {
    stopping.isProperEnd = true
    return serve
  })

/** Runs the program to its end and leaves with its exit status. Signals interrupt it. */
export const launch = <E>(program: Effect.Effect<void, E>): void => {
  const stopping = { isProperEnd: false }
  NodeRuntime.runMain(Effect.provideService(program, Stopping, stopping), {
    disableErrorReporting: true,
    teardown: (exit, onExit) =>
      stopping.isProperEnd && Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
        ? onExit(0)
        : Runtime.defaultTeardown(exit, onExit)
  })
}
