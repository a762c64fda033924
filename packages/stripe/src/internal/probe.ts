/** Whether Stripe answers at all: a customer is asked for who need not be there, since "no such customer" is an answer too. */
import { ChargeError, type ChargeErrorReason } from "@purser/core"
import { Effect } from "effect"
import type { StripeClient } from "../StripeClient.ts"
import { reasonOf as reasonOfCall } from "./ask.ts"
import { reasonOf } from "./refusal.ts"

const operation = "probe"
const fail = (reason: ChargeErrorReason, requestId: string | null) => Effect.fail(new ChargeError({ reason, chargeKey: null, requestId }))

/** Succeeds with anything below 500. */
export const probeWith = (client: StripeClient["Service"]): Effect.Effect<void, ChargeError> =>
  client.call(operation, (stripe) => stripe.customers.retrieve("cus_purser_probe")).pipe(
    Effect.catchTag("StripeCallError", (error) => fail(reasonOfCall(error), error.requestId)),
    Effect.flatMap((answer) => answer.status < 500 ? Effect.void : fail(reasonOf(operation, answer, client.scrub), answer.requestId))
  )
