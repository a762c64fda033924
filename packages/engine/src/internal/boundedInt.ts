/** An integer of the configuration with limits: a wrong one fails at start, with the limits. */
import { Config, Schema } from "effect"

/** Reads `name`; the default stands when it is not set. */
export const boundedInt = (
  name: string,
  limits: { readonly minimum: number; readonly maximum: number; readonly default: number }
): Config.Config<number> =>
  Config.schema(
    Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: limits.minimum, maximum: limits.maximum })),
    name
  ).pipe(Config.withDefault(limits.default))
