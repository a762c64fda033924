/** What the clients of all patterns share: the service of charges, and how texts are carried. */
import { ChargeClient, type ChargeOutcome, type ChargeRequest, type SubmitError } from "@purser/core"
import { traced } from "./traced.ts"
import type { WindowClient } from "./windowClient.ts"

/** What errors of the transport call a charge. */
export const chargeKeyOfRequest = (request: ChargeRequest): string => request.chargeKey

/** What is known of requests that are texts already. */
export const textRequests = { keyOf: () => null, sizeOf: (text: string) => text.length } as const

/** The service of charges over what carries them. */
export const chargeClient = ({ submit }: Pick<WindowClient<ChargeRequest, ChargeOutcome, SubmitError>, "submit">): ChargeClient["Service"] =>
  ChargeClient.of({ submit: (request) => traced("ChargeClient.submit", submit(request)) })
