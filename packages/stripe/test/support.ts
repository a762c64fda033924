/** What the tests share: orders, a gateway on the simulator, and a server that answers with any bytes it is told to. */
import { ChargeGateway, type ChargeError, ChargeRequest, type GatewayOrder } from "@purser/core"
import { StripeSim, type StripeSimOptions } from "@purser/stripe-sim"
import { Cause, Deferred, Effect, Exit, Layer, Logger, Queue, Redacted, References, Schema } from "effect"
import * as net from "node:net"
import { StripeClient, StripeGateway, type StripeOptions } from "@purser/stripe"

export const secret = "rk_test_51HushHushVerySecret"

export const orderFor = (fields: Partial<typeof ChargeRequest.Encoded> = {}, generation = 1): GatewayOrder => {
  const request = Schema.decodeSync(ChargeRequest)({
    namespace: "zmq-billing",
    customerId: "cust_1",
    billingPeriod: "2026-07",
    amountMinor: 1234,
    currency: "usd",
    stripeCustomerId: "cus_1",
    ...fields
  })
  return { chargeKey: request.chargeKey, request, generation }
}

export const gatewayAt = (url: string, options: Omit<StripeOptions, "key" | "url"> = {}) =>
  StripeGateway.layerPaymentIntentsWith().pipe(
    Layer.provideMerge(StripeClient.layer({ key: Redacted.make(secret), url, ...options }))
  )

/** A gateway on a simulator of its own. */
export const onSim = (options: Omit<StripeOptions, "key" | "url"> = {}, sim: StripeSimOptions = {}) =>
  Layer.unwrap(Effect.map(StripeSim, ({ url }) => gatewayAt(url, options))).pipe(Layer.provideMerge(StripeSim.layer(sim)))

/** The failure of an effect that must fail with a `ChargeError`. */
export const failing = <A, R>(effect: Effect.Effect<A, ChargeError, R>) => Effect.flip(effect)

/** An intent that was made and not yet confirmed. */
export const created = (order: GatewayOrder) => Effect.flatMap(ChargeGateway, (gateway) => gateway.create(order, ""))

/** Confirms with a method, attempt 1 unless told otherwise. */
export const confirm = (order: GatewayOrder, id: string, paymentMethod = "pm_card_visa", attempt = 1, keySuffix = "") =>
  Effect.flatMap(ChargeGateway, (gateway) => gateway.confirm(order, { id, attempt, paymentMethod, keySuffix }))

export interface StubRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly socket: net.Socket
  /** Done when the other side has closed or reset this connection. */
  readonly closed: Deferred.Deferred<void>
}

export interface Stub {
  readonly url: string
  /** Every request, in order of arrival. */
  readonly arrived: Queue.Queue<StubRequest>
  readonly requests: Array<StubRequest>
}

const parseHead = (head: string) => {
  const [first = "", ...lines] = head.split("\r\n")
  const [method = "", path = ""] = first.split(" ")
  const headers: Record<string, string> = {}
  for (const line of lines) headers[line.slice(0, line.indexOf(":")).toLowerCase()] = line.slice(line.indexOf(":") + 1).trim()
  return { method, path, headers }
}

/** A server on raw sockets that lets a test decide every byte of the answer. */
export const stub = (answer: (request: StubRequest) => void) =>
  Effect.gen(function*() {
    const arrived = yield* Queue.unbounded<StubRequest>()
    const requests: Array<StubRequest> = []
    const sockets = new Set<net.Socket>()
    const onSocket = (socket: net.Socket) => {
      sockets.add(socket)
      const closed = Deferred.makeUnsafe<void>()
      socket.on("error", () => {})
      socket.on("close", () => {
        sockets.delete(socket)
        Deferred.doneUnsafe(closed, Exit.void)
      })
      let buffer = ""
      socket.on("data", (chunk) => {
        buffer += chunk.toString("utf8")
        for (;;) {
          const end = buffer.indexOf("\r\n\r\n")
          if (end < 0) return
          const head = parseHead(buffer.slice(0, end))
          const length = Number(head.headers["content-length"] ?? 0)
          if (buffer.length < end + 4 + length) return
          const request = { ...head, body: buffer.slice(end + 4, end + 4 + length), socket, closed }
          buffer = buffer.slice(end + 4 + length)
          requests.push(request)
          Queue.offerUnsafe(arrived, request)
          answer(request)
        }
      })
    }
    const server = yield* Effect.acquireRelease(
      Effect.callback<net.Server>((resume) => {
        const listening = net.createServer(onSocket).listen(0, "127.0.0.1", () => resume(Effect.succeed(listening)))
      }),
      (server) =>
        Effect.callback<void>((resume) => {
          for (const socket of sockets) socket.destroy()
          server.close(() => resume(Effect.void))
        })
    )
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    return { url: `http://127.0.0.1:${port}`, arrived, requests } satisfies Stub
  })

/** A whole HTTP answer. */
export const http = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): string => {
  const text = typeof body === "string" ? body : JSON.stringify(body)
  const lines = Object.entries({ "content-type": "application/json", "request-id": "req_stub", ...headers })
  return `HTTP/1.1 ${status} X\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}content-length: ${
    Buffer.byteLength(text)
  }\r\n\r\n${text}`
}

/** Runs the effect on a gateway whose Stripe answers every request with these bytes. */
export const answered = <A, E, R>(bytes: string, effect: Effect.Effect<A, E, R>) =>
  Effect.scoped(Effect.gen(function*() {
    const server = yield* stub(({ socket }) => socket.write(bytes))
    const result = yield* effect.pipe(Effect.provide(gatewayAt(server.url)))
    return { result, requests: server.requests }
  }))

/** Everything that a person or a log could see of an effect: its failure in every form, and all log lines. */
export const visible = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    const sink = Logger.make((options) => lines.push(Logger.formatJson.log(options)))
    const exit = yield* Effect.exit(effect).pipe(
      Effect.provide(Logger.layer([sink])),
      Effect.provideService(References.MinimumLogLevel, "All")
    )
    if (Exit.isFailure(exit)) {
      for (const error of Cause.prettyErrors(exit.cause)) lines.push(error.stack ?? "", error.message, JSON.stringify(error))
      lines.push(Cause.pretty(exit.cause), JSON.stringify(exit), String(exit.cause))
    }
    return lines.join("\n")
  })
