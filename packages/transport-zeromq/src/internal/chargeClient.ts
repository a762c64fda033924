/** What the clients of all patterns share: the service of charges, and how texts are carried. */
import { ChargeClient, type ChargeOutcome, type ChargeRequest, type SubmitError, Tracing, type WireCodec } from "@purser/core"
import type { PatternClientOptions } from "../PatternOptions.ts"
import { Result } from "effect"
import type { ReplyOf } from "./errand.ts"
import { plainClientWire } from "./plainClientWire.ts"
import type { ClientWire, WindowClient } from "./windowClient.ts"

/** What errors of the transport call a charge. */
const chargeKeyOfRequest = (request: ChargeRequest): string => request.chargeKey

/**
 * Whether an answer is one to this charge: whoever answers can read the request's id, so that the id alone proves nothing.
 * An error need not name a charge.
 */
export const answersCharge = ({ chargeKey }: ChargeRequest, reply: ReplyOf<ChargeOutcome, SubmitError>): boolean =>
  Result.isSuccess(reply) ? reply.success.chargeKey === chargeKey : reply.failure.chargeKey === null || reply.failure.chargeKey === chargeKey

/** What a window or a pool of charges is told of them. */
export const charges = { keyOf: chargeKeyOfRequest, fits: answersCharge } as const

/** How a client speaks: joined frames, or plain messages without a seal for programs that know neither. */
export const speaking = (options: PatternClientOptions, wire: WireCodec): { readonly wire: ClientWire<ChargeRequest, ChargeOutcome, SubmitError>; readonly joinMax?: number } =>
  options.form === "plain" ? { wire: plainClientWire, joinMax: 1 } : { wire }

/** What is known of requests that are texts already. */
export const textRequests = { keyOf: () => null, sizeOf: (text: string) => text.length } as const

/** The service of charges over what carries them. */
export const chargeClient = ({ submit }: Pick<WindowClient<ChargeRequest, ChargeOutcome, SubmitError>, "submit">): ChargeClient["Service"] =>
  ChargeClient.of({
    submit: (request) => Tracing.sending("ChargeClient.submit", (traceparent) => submit(request, traceparent), Tracing.ofCharge(request))
  })
