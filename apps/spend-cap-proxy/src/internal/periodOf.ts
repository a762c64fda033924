/** How the proxy reads a billing period that a call names. */
import { parsePeriod } from "@purser/core"
import { Result } from "effect"

/** A billing period as vaults write it; what is none stays as it is. */
export const periodOf = (text: string): string => Result.getOrElse(parsePeriod(text, { labels: "opaque" }), () => text)
