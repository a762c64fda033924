import { assert, describe, it } from "@effect/vitest"
import { StripeClient, StripeMetrics, type StripeOptions } from "@purser/stripe"
import { Cause, Deferred, Effect, Exit, Fiber, Layer, Metric, Queue, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { Stripe } from "stripe"
import { http, secret, stub, type Stub, type StubRequest, visible } from "./support.ts"

const clientAt = (server: Stub, options: Partial<StripeOptions> = {}) =>
  Layer.orDie(StripeClient.layer({ key: Redacted.make(secret), url: server.url, ...options }))

const call = (operation = "probe") => Effect.flatMap(StripeClient, (client) => client.call(operation, (stripe) => stripe.customers.retrieve("cus_1")))
const post = Effect.flatMap(StripeClient, (client) =>
  client.call("post", (stripe) => stripe.paymentIntents.create({ amount: 100, currency: "usd" }, { idempotencyKey: "key_1" })))

const silent = () => {}
const customer = { object: "customer", id: "cus_1" }

/** The SDK with its own HTTP client and retries off. */
const plainSdk = (server: Stub) => {
  const { hostname, port } = new URL(server.url)
  return new Stripe(secret, { host: hostname, port, protocol: "http", maxNetworkRetries: 0, telemetry: false })
}

describe("StripeClient sends once", () => {
  it.effect("where the SDK's own client sends twice, with its retries off", () =>
    Effect.gen(function*() {
      const server = yield* stub(({ socket }) => socket.resetAndDestroy())
      yield* Effect.exit(Effect.tryPromise(() => plainSdk(server).customers.retrieve("cus_1")))
      assert.strictEqual(server.requests.length, 2)
      const ours = yield* stub(({ socket }) => socket.resetAndDestroy())
      yield* Effect.exit(call().pipe(Effect.provide(clientAt(ours))))
      assert.strictEqual(ours.requests.length, 1)
    }))

  const faults: Record<string, (request: StubRequest) => void> = {
    "reset after the request": ({ socket }) => socket.resetAndDestroy(),
    "closed without an answer": ({ socket }) => socket.end(),
    "body cut off": ({ socket }) => socket.end(http(200, customer).slice(0, -5)),
    "chunked body cut off": ({ socket }) =>
      socket.end("HTTP/1.1 200 OK\r\nrequest-id: req_1\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"id\"\r\n"),
    "not HTTP at all": ({ socket }) => socket.end("SMTP ready\r\n\r\n"),
    "switched to another protocol": ({ socket }) =>
      socket.end("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"),
    "a body without an end": ({ socket }) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 20000000\r\n\r\n")
      socket.write("x".repeat(9 * 1024 * 1024))
    }
  }
  for (const [name, fault] of Object.entries(faults)) {
    it.effect(`${name}: one request, ConnectionFailed`, () =>
      Effect.gen(function*() {
        const server = yield* stub(fault)
        const error = yield* Effect.flip(post.pipe(Effect.provide(clientAt(server))))
        assert.strictEqual(error.reason._tag, "ConnectionFailed")
        assert.strictEqual(server.requests.length, 1)
      }))
  }

  it.effect("tells the status and the request id of a body that was cut off", () =>
    Effect.gen(function*() {
      const server = yield* stub(({ socket }) => socket.end(http(200, customer).slice(0, -5)))
      const error = yield* Effect.flip(call().pipe(Effect.provide(clientAt(server))))
      assert.strictEqual(error.reason._tag === "ConnectionFailed" ? error.reason.status : undefined, 200)
      assert.strictEqual(error.requestId, "req_stub")
    }))

  for (const [status, headers] of [[500, {}], [503, { "stripe-should-retry": "true" }], [409, {}], [429, { "stripe-should-retry": "true" }], [302, { location: "/v1/other" }], [307, { location: "/v1/other" }]] as const) {
    it.effect(`${status} ${JSON.stringify(headers)}: one request, and the answer as it is`, () =>
      Effect.gen(function*() {
        const server = yield* stub(({ socket }) => socket.write(http(status, { error: { type: "x" } }, headers)))
        const answer = yield* post.pipe(Effect.provide(clientAt(server)))
        assert.strictEqual(answer.status, status)
        assert.deepStrictEqual(answer.json, { error: { type: "x" } })
        assert.strictEqual(server.requests.length, 1)
      }))
  }

  it.effect("a refused connection is ConnectionFailed with its code", () =>
    Effect.gen(function*() {
      const url = yield* Effect.scoped(Effect.map(stub(silent), (server) => server.url))
      const error = yield* Effect.flip(call().pipe(Effect.provide(StripeClient.layer({ key: Redacted.make(secret), url }))))
      assert.strictEqual(error.reason._tag === "ConnectionFailed" ? error.reason.code : undefined, "ECONNREFUSED")
    }))

  it.effect("a call that asks twice sends once, a call that asks for nothing sends nothing", () =>
    Effect.gen(function*() {
      const server = yield* stub(({ socket }) => socket.write(http(200, customer)))
      yield* Effect.gen(function*() {
        const client = yield* StripeClient
        yield* client.call("twice", (stripe) =>
          stripe.customers.retrieve("cus_1").then(() => stripe.customers.retrieve("cus_2")))
        assert.strictEqual(server.requests.length, 1)
        const error = yield* Effect.flip(client.call("nothing", () => Promise.resolve()))
        assert.strictEqual(error.reason._tag, "NotSent")
        const thrown = yield* Effect.flip(client.call("throws", () => {
          throw new Error("no such parameter")
        }))
        assert.include(thrown.message, "no such parameter")
        const late = yield* Effect.flip(client.call("late", (stripe) => Promise.resolve().then(() => stripe.customers.retrieve("cus_1"))))
        assert.strictEqual(late.message, "late: not sent: a request outside of a call")
        assert.strictEqual(server.requests.length, 1)
      }).pipe(Effect.provide(clientAt(server)))
    }))
})

describe("StripeClient's connections", () => {
  const ends: Record<string, (request: StubRequest) => void> = {
    "reset": ({ socket }) => socket.resetAndDestroy(),
    "closed": ({ socket }) => socket.end()
  }
  for (const [name, end] of Object.entries(ends)) {
    it.effect(`one that is ${name} under its second request: sent once, ConnectionFailed`, () =>
      Effect.gen(function*() {
        let asked = 0
        const server = yield* stub((request) => {
          asked += 1
          if (asked === 1) request.socket.write(http(200, customer))
          else end(request)
        })
        const error = yield* Effect.flip(Effect.andThen(post, post).pipe(Effect.provide(clientAt(server))))
        assert.strictEqual(error.reason._tag === "ConnectionFailed" ? error.reason.code : undefined, "ECONNRESET")
        assert.strictEqual(server.requests.length, 2)
        assert.strictEqual(server.requests[0]?.socket, server.requests[1]?.socket)
      }))
  }

  it.effect("one that the other side closed in between is left, and the next request goes over another", () =>
    Effect.gen(function*() {
      const server = yield* stub(({ socket }) => socket.end(http(200, customer)))
      yield* Effect.gen(function*() {
        yield* post
        yield* Deferred.await((yield* Queue.take(server.arrived)).closed)
        assert.strictEqual((yield* post).status, 200)
      }).pipe(Effect.provide(clientAt(server)))
      assert.strictEqual(server.requests.length, 2)
      assert.notStrictEqual(server.requests[0]?.socket, server.requests[1]?.socket)
    }))
})

describe("StripeClient on the wire", () => {
  it.effect("keeps the accounts of calls apart that begin together", () =>
    Effect.gen(function*() {
      const server = yield* stub(({ socket }) => socket.write(http(200, customer)))
      const accounts = ["acct_1", "acct_2", "acct_3"]
      yield* Effect.flatMap(StripeClient, (client) =>
        Effect.forEach(accounts, (account) =>
          client.call("post", (stripe) => stripe.paymentIntents.create({ amount: 100, currency: "usd" }, { idempotencyKey: account }), { account }), {
          concurrency: "unbounded"
        })).pipe(Effect.provide(clientAt(server)))
      const seen = server.requests.map(({ headers }) => [headers["idempotency-key"], headers["stripe-account"]])
      assert.sameDeepMembers(seen, accounts.map((account) => [account, account]))
    }))

  it.effect("sends key, version, account and idempotency key, and no telemetry", () =>
    Effect.gen(function*() {
      const server = yield* stub(({ socket }) => socket.write(http(200, customer)))
      yield* Effect.andThen(post, post).pipe(Effect.provide(clientAt(server, { account: "acct_1", url: `${server.url}/proxy/` })))
      assert.strictEqual(server.requests.length, 2)
      for (const { body, headers, method, path } of server.requests) {
        assert.strictEqual(`${method} ${path}`, "POST /proxy/v1/payment_intents")
        assert.strictEqual(body, "amount=100&currency=usd")
        assert.strictEqual(headers["authorization"], `Bearer ${secret}`)
        assert.strictEqual(headers["idempotency-key"], "key_1")
        assert.strictEqual(headers["stripe-account"], "acct_1")
        assert.strictEqual(headers["stripe-version"], "2026-10-28.endive")
        assert.notProperty(headers, "x-stripe-client-telemetry")
        assert.notInclude(headers["x-stripe-client-user-agent"] ?? "", "telemetry_id")
      }
      assert.strictEqual(server.requests[0]?.socket, server.requests[1]?.socket, "the connection is kept")
    }))

  it.effect("reads a body that arrives in pieces, also in the middle of a character", () =>
    Effect.gen(function*() {
      const bytes = Buffer.from(http(200, { name: "Żółć" }))
      const server = yield* stub(({ socket }) => {
        socket.setNoDelay(true)
        for (const byte of bytes) socket.write(Buffer.of(byte))
      })
      const answer = yield* call().pipe(Effect.provide(clientAt(server)))
      assert.deepStrictEqual(answer.json, { name: "Żółć" })
    }))

  it.effect("holds no more connections than it may", () =>
    Effect.gen(function*() {
      const server = yield* stub(silent)
      yield* Effect.gen(function*() {
        const client = yield* StripeClient
        const get = client.call("get", (stripe) => stripe.customers.retrieve("cus_1"))
        const fibers = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(get))
        const first = yield* Queue.take(server.arrived)
        const second = yield* Queue.take(server.arrived)
        assert.strictEqual(server.requests.length, 2)
        first.socket.write(http(200, customer))
        const third = yield* Queue.take(server.arrived)
        assert.strictEqual(third.socket, first.socket)
        second.socket.write(http(200, customer))
        third.socket.write(http(200, customer))
        yield* Effect.forEach(fibers, Fiber.join)
        assert.strictEqual(server.requests.length, 3)
      }).pipe(Effect.provide(clientAt(server, { maxConnections: 2 })))
    }))
})

describe("StripeClient's deadline", () => {
  const stalls: Record<string, (request: StubRequest) => void> = {
    "no answer": silent,
    "a stalled head": ({ socket }) => socket.write("HTTP/1.1 200 OK\r\ncontent-"),
    "a stalled body": ({ socket }) => socket.write(http(200, customer).slice(0, -5))
  }
  for (const [name, stall] of Object.entries(stalls)) {
    it.effect(`${name}: CallTimeout when the time is up, and the connection is closed`, () =>
      Effect.gen(function*() {
        const server = yield* stub(stall)
        const fiber = yield* post.pipe(Effect.provide(clientAt(server, { timeout: "5 seconds" })), Effect.forkChild)
        const request = yield* Queue.take(server.arrived)
        yield* TestClock.adjust("5 seconds")
        const error = yield* Effect.flip(Fiber.join(fiber))
        assert.strictEqual(error.reason._tag === "CallTimeout" ? error.reason.timeoutMs : undefined, 5000)
        yield* Deferred.await(request.closed)
        assert.strictEqual(server.requests.length, 1)
      }))
  }

  it.effect("covers the body: a drip of bytes does not put it off", () =>
    Effect.gen(function*() {
      const server = yield* stub(({ socket }) => socket.write(http(200, customer).slice(0, -10)))
      const fiber = yield* call().pipe(Effect.provide(clientAt(server, { timeout: "5 seconds" })), Effect.forkChild)
      const request = yield* Queue.take(server.arrived)
      for (let second = 0; second < 5; second++) {
        request.socket.write(" ")
        yield* TestClock.adjust("1 second")
      }
      assert.strictEqual((yield* Effect.flip(Fiber.join(fiber))).reason._tag, "CallTimeout")
      yield* Deferred.await(request.closed)
    }))

  it.effect("an interruption aborts the request and frees its place", () =>
    Effect.gen(function*() {
      const server = yield* stub(silent)
      yield* Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(post)
        const request = yield* Queue.take(server.arrived)
        yield* Fiber.interrupt(fiber)
        yield* Deferred.await(request.closed)
        const next = yield* Effect.forkChild(call())
        const second = yield* Queue.take(server.arrived)
        second.socket.write(http(200, customer))
        assert.strictEqual((yield* Fiber.join(next)).status, 200)
        assert.strictEqual(server.requests.length, 2)
      }).pipe(Effect.provide(clientAt(server, { maxConnections: 1 })))
    }))

  it.effect("a call that waits for a connection can be interrupted and is never sent", () =>
    Effect.gen(function*() {
      const server = yield* stub(silent)
      yield* Effect.gen(function*() {
        const holder = yield* Effect.forkChild(call())
        const held = yield* Queue.take(server.arrived)
        const waiting = yield* Effect.forkChild(post)
        yield* Effect.yieldNow
        yield* Fiber.interrupt(waiting)
        held.socket.write(http(200, customer))
        yield* Fiber.join(holder)
        assert.deepStrictEqual(server.requests.map(({ method }) => method), ["GET"])
      }).pipe(Effect.provide(clientAt(server, { maxConnections: 1 })))
    }))

  it.effect("the end of the scope closes idle connections", () =>
    Effect.gen(function*() {
      const server = yield* stub(({ socket }) => socket.write(http(200, customer)))
      yield* call().pipe(Effect.provide(clientAt(server)))
      yield* Deferred.await((yield* Queue.take(server.arrived)).closed)
    }))
})

describe("StripeClient shows", () => {
  it.effect("each request as a count by operation and status", () =>
    Effect.gen(function*() {
      const count = (status: string) =>
        Effect.map(Metric.value(StripeMetrics.requests.of("counted", status)), (state) => state.count)
      const answers = [http(200, customer), http(429, {}), ""]
      const server = yield* stub(({ socket }) => {
        const bytes = answers.shift()
        if (bytes === "") socket.resetAndDestroy()
        else if (bytes !== undefined) socket.write(bytes)
      })
      yield* Effect.gen(function*() {
        yield* call("counted")
        yield* call("counted")
        yield* Effect.exit(call("counted"))
        const pending = yield* Effect.forkChild(call("counted"))
        for (let seen = 0; seen < 4; seen++) yield* Queue.take(server.arrived)
        yield* Fiber.interrupt(pending)
      }).pipe(Effect.provide(clientAt(server)))
      for (const status of ["200", "429", "connection_failed", "interrupted"]) assert.strictEqual(yield* count(status), 1, status)
    }))

  it.effect("each request in the log, with its id, and never the key", () =>
    Effect.gen(function*() {
      const server = yield* stub(({ headers, socket }) => socket.write(http(401, { error: { message: headers["authorization"] } })))
      const text = yield* visible(call().pipe(Effect.provide(clientAt(server))))
      assert.include(text, "req_stub")
      assert.include(text, "probe")
      assert.notInclude(text, secret)
    }))

  it.effect("no key in a failure, whatever the other side says", () =>
    Effect.gen(function*() {
      const server = yield* stub(({ headers, socket }) => socket.end(`${headers["authorization"]}\r\n\r\n`))
      const exit = yield* Effect.exit(call().pipe(Effect.provide(clientAt(server))))
      assert.isTrue(Exit.isFailure(exit))
      if (Exit.isFailure(exit)) assert.include(Cause.pretty(exit.cause), "StripeCallError")
      assert.notInclude(yield* visible(call().pipe(Effect.provide(clientAt(server)))), secret)
    }))

  it.effect("texts without keys and client secrets", () =>
    Effect.gen(function*() {
      const { scrub } = yield* StripeClient
      const dirty = `key ${secret} or sk_test_51***abcd, intent pi_123_secret_AbC and\r\nmore`
      assert.strictEqual(scrub(dirty), "key [key] or [key], intent pi_123_secret_[hidden] and more")
      assert.isBelow(scrub("x".repeat(100_000)).length, 600)
    }).pipe(Effect.provide(StripeClient.layer({ key: Redacted.make(secret) }))))
})
