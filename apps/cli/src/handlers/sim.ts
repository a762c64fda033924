/** `purser sim`: the Stripe simulator alone. */
import { StripeSim, type StripeSimOptions } from "@purser/stripe-sim"
import { Effect } from "effect"
import { serving } from "../launch.ts"
import { listenRefused } from "../listening.ts"
import { out } from "../ui/Output.ts"

/** Serves until stopped. */
export const sim = (options: StripeSimOptions) =>
  Effect.scoped(Effect.gen(function*() {
    const { url } = yield* StripeSim.make(options).pipe(
      Effect.catchTag("StripeSimError", ({ reason }) =>
        Effect.fail(listenRefused("the simulator", reason, reason._tag === "AddressInUse" ? "EADDRINUSE" : reason.cause)))
    )
    yield* out(`Stripe simulator on ${url}\n  PURSER_STRIPE_URL=${url} PURSER_STRIPE_KEY=sk_test_sim purser run FILE\n  curl ${url}/_sim/books`)
    return yield* serving(Effect.never)
  }))
