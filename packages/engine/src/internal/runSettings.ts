/** Settings that more than one part of a run reads. */
import { Config, Duration } from "effect"

/** How often whoever has a run in work looks whether a person has decided something about it. */
export const controlEvery = Config.Duration("PURSER_RUN_CONTROL_POLL").pipe(Config.withDefault(Duration.seconds(1)))

/** How long a dispatch in which nothing settles goes on. */
export const runPatience = Config.Duration("PURSER_RUN_PATIENCE").pipe(Config.withDefault(Duration.seconds(60)))
