/** A Stripe simulator in a process of its own; it remembers only so many requests. Prints its address. */
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"

await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
  const { url } = yield* StripeSim.make({ journalLimit: 100, eventsLimit: 100 })
  process.stdout.write(`on ${url}\n`)
  return yield* Effect.never
})))
