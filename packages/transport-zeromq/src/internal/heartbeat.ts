/** The time between the heartbeats of brokers and workers. */
import type { Duration } from "effect"
import { millis } from "./patternOptions.ts"

/** When none is given. */
export const defaultHeartbeat: Duration.Input = "1 second"

/** In milliseconds; never so short that heartbeats would be all that a process does. */
export const heartbeatMsOf = (heartbeat: Duration.Input | undefined): number => Math.max(10, millis(heartbeat ?? defaultHeartbeat))
