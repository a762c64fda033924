/**
 * A PAIR for messages of any schema: two ends in one process, each of which sends and receives at any time.
 *
 * It is for one process alone. Between processes a PAIR does not find its peer again after a restart, and a second peer
 * is shut out in silence; the other patterns are made for that.
 */
import { Closed, MalformedMessage, TransportError } from "@purser/core"
import { Effect, Result, Schema, type Scope, Stream } from "effect"
import type { Endpoint } from "../Endpoint.ts"
import type { SocketSettings } from "../SocketSettings.ts"
import { openZmqSocket } from "../ZmqSocket.ts"
import { loadZeromq } from "./native.ts"
import { settingsOf } from "./patternOptions.ts"
import type { MessageSchema } from "./typedPubSub.ts"

/** One end. */
export interface TypedPairOptions<Out, In> {
  /** `inproc://` and a name. One end binds, the other connects; which comes first does not matter. */
  readonly endpoint: string
  readonly attach: "bind" | "connect"
  readonly send: MessageSchema<Out>
  readonly receive: MessageSchema<In>
  /** How long a send may wait for the other end to be there and to take more (1,000 ms); then it is `Backpressure`. */
  readonly sendTimeoutMs?: number | undefined
  readonly socket?: Partial<SocketSettings> | undefined
}

/** An end that is open. */
export interface TypedPair<Out, In> {
  readonly send: (message: Out) => Effect.Effect<void, TransportError>
  /** What the other end sends, in order; a message that the schema refuses is a failure of its own. To be run once. */
  readonly messages: Stream.Stream<Result.Result<In, TransportError>>
}

const inProcess = /^inproc:\/\/.+$/

/** The address of a PAIR, or why it is none. */
export const pairEndpoint = (address: string, attach: Endpoint["attach"]): Result.Result<Endpoint, TransportError> =>
  inProcess.test(address)
    ? Result.succeed({ attach, address, ipv6: false })
    : Result.fail(new TransportError({ reason: new Closed({ endpoint: address, detail: "pair is for one process: its address is inproc:// and a name" }), chargeKey: null }))

const malformed = (detail: string) => new TransportError({ reason: new MalformedMessage({ detail, field: null }), chargeKey: null })

/** Opens one end until the scope closes. */
export const openPair = Effect.fnUntraced(function*<Out, In>(options: TypedPairOptions<Out, In>): Effect.fn.Return<TypedPair<Out, In>, TransportError, Scope.Scope> {
  const endpoint = yield* Effect.fromResult(pairEndpoint(options.endpoint, options.attach))
  const settings = settingsOf(options)
  const encode = Schema.encodeUnknownResult(Schema.fromJsonString(options.send))
  const decode = Schema.decodeUnknownResult(Schema.fromJsonString(options.receive))
  const socket = yield* openZmqSocket(yield* loadZeromq, {
    kind: "pair",
    endpoints: [endpoint],
    settings,
    sendTimeoutMs: options.sendTimeoutMs ?? 1000,
    lingerMs: settings.lingerMs
  })
  return {
    send: (message) =>
      Effect.flatMap(Effect.mapError(Effect.fromResult(encode(message)), (error) => malformed(error.message)), (text) => socket.send([text])),
    messages: Stream.fromQueue(socket.incoming).pipe(
      Stream.map(([frame]) => Result.mapError(decode(frame?.toString("utf8")), (error) => malformed(error.message)))
    )
  }
})
