/** Whether durations on the way of a charge are measured. They cost readings of the clock, which nobody pays who does not look. */
import { Context } from "effect"

/** Read when a layer is built; off by default. */
export const Measures = Context.Reference<boolean>("@purser/core/Measures", { defaultValue: () => false })
