/** Whether free period labels are taken, from `PURSER_PERIOD_LABELS`. */
import { Config } from "effect"

/** `calendar` unless the configuration says `opaque`. */
export const periodLabels = Config.Literals(["calendar", "opaque"], "PURSER_PERIOD_LABELS").pipe(Config.withDefault("calendar" as const))
