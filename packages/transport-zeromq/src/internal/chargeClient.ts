/** What the clients of all patterns share: the service of charges, and how texts are carried. */
import { ChargeClient, type ChargeOutcome, type ChargeRequest, type SubmitError, type WireCodec } from "@purser/core"
import type { PatternClientOptions } from "../PatternOptions.ts"
import { plainClientWire } from "./plainClientWire.ts"
import { traced } from "./traced.ts"
import type { ClientWire, WindowClient } from "./windowClient.ts"

/** What errors of the transport call a charge. */
export const chargeKeyOfRequest = (request: ChargeRequest): string => request.chargeKey

/** How a client speaks: joined frames, or plain messages without a seal for programs that know neither. */
export const speaking = (options: PatternClientOptions, wire: WireCodec): { readonly wire: ClientWire<ChargeRequest, ChargeOutcome, SubmitError>; readonly joinMax?: number } =>
  options.form === "plain" ? { wire: plainClientWire, joinMax: 1 } : { wire }

/** What is known of requests that are texts already. */
export const textRequests = { keyOf: () => null, sizeOf: (text: string) => text.length } as const

/** The service of charges over what carries them. */
export const chargeClient = ({ submit }: Pick<WindowClient<ChargeRequest, ChargeOutcome, SubmitError>, "submit">): ChargeClient["Service"] =>
  ChargeClient.of({ submit: (request) => traced("ChargeClient.submit", submit(request)) })
