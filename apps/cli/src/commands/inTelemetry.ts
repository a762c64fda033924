/** Puts a command into the telemetry of the configuration; loaded when the command runs, so that `--help` is quick. */
import { Effect } from "effect"
import type { Component } from "../handlers/telemetry.ts"

/** The command, observed when the configuration says so. */
export const inTelemetry = <A, E, R>(component: Component, command: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Effect.promise(() => import("../handlers/telemetry.ts")), ({ observed }) => observed(component, command))
