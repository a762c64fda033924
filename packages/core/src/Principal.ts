/**
 * Who asked for a charge, as the transport knows it: the name of the key that sealed the request. It is part of no
 * identity and decides nothing; the event trail keeps it.
 */
import { Context } from "effect"

/** The principal of the request that is being handled; null when the transport does not know one. */
export const Principal = Context.Reference<string | null>("@purser/core/Principal", { defaultValue: () => null })
