/** The two sides of a service whose messages are schemas, on any pattern's sockets. */
import { MalformedMessage, Tracing, TransportError } from "@purser/core"
import { Effect, Result } from "effect"
import type { ServiceClient, ServiceOptions } from "../ServiceMessages.ts"
import { jsonWriter, makeTypedWire, type Messages } from "./typedWire.ts"
import type { ClientWire, WindowClient } from "./windowClient.ts"

/** Makes the client of a service over whatever carries its texts. */
export const makeTypedClient = <Req, Rep, Err, E, R>(
  messages: Messages<Req, Rep, Err>,
  options: ServiceOptions,
  make: (wire: ClientWire<string, Rep, Err>) => Effect.Effect<WindowClient<string, Rep, Err>, E, R>
): Effect.Effect<ServiceClient<Req, Rep, Err>, E, R> =>
  Effect.map(make(makeTypedWire(messages)), (carried) => {
    const requestMaxBytes = options.requestMaxBytes ?? 1024 * 1024
    const encode = jsonWriter(messages.request)
    const refuse = (reason: MalformedMessage) => Result.fail(new TransportError({ reason, chargeKey: null }))
    const write = (request: Req): Result.Result<string, TransportError> => {
      const encoded = encode(request)
      if (Result.isFailure(encoded)) return refuse(encoded.failure)
      const text = encoded.success
      // Room for the envelope around it.
      return 3 * text.length + 1024 > requestMaxBytes && Buffer.byteLength(text) + 1024 > requestMaxBytes
        ? refuse(new MalformedMessage({ detail: `the request is longer than ${requestMaxBytes} bytes`, field: null }))
        : Result.succeed(text)
    }
    return {
      request: (request) => {
        const text = write(request)
        return Result.isFailure(text) ? Effect.fail(text.failure) : Tracing.sending("ServiceClient.request", (traceparent) => carried.submit(text.success, traceparent))
      },
      requestAll: (requests) => Tracing.sending("ServiceClient.requestAll", (traceparent) => carried.submitAll(requests, write, traceparent))
    }
  })
