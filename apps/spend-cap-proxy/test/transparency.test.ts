/** What passes through unchanged, against an upstream that shows what arrived, byte by byte. */
import { assert, layer } from "@effect/vitest"
import { Database } from "@purser/postgres"
import { ProxyDatabase, ProxyServer, VaultAdmin, VaultStore } from "@purser/spend-cap-proxy"
import { Context, Effect, Fiber, Layer, Redacted } from "effect"
import { Agent, createServer, type IncomingMessage, request as httpRequest, type ServerResponse } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { type NewVault } from "@purser/spend-cap-proxy"
import { makeVault, raw, realKey, used } from "./support/world.ts"

/** One request as it arrived. */
interface Seen {
  readonly method: string
  readonly url: string
  readonly raw: ReadonlyArray<string>
  readonly headers: IncomingMessage["headers"]
  readonly body: Buffer
  readonly socket: Socket
}

type Handler = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void

/** An upstream whose answers a test decides. */
class Echo extends Context.Service<Echo, {
  readonly url: string
  readonly seen: Array<Seen>
  handler: Handler
}>()("@purser/spend-cap-proxy/test/Echo") {
  static readonly layer = Layer.effect(Echo, Effect.acquireRelease(
    Effect.callback<{ readonly echo: Echo["Service"]; readonly close: () => void }>((resume) => {
      const echo: { url: string; seen: Array<Seen>; handler: Handler } = { url: "", seen: [], handler: (_, response) => void response.end("{}") }
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("error", () => undefined)
        request.on("end", () => {
          const body = Buffer.concat(chunks)
          echo.seen.push({
            method: request.method!, url: request.url!, raw: request.rawHeaders, headers: request.headers, body, socket: request.socket
          })
          echo.handler(request, response, body)
        })
      })
      server.listen(0, "127.0.0.1", () => {
        echo.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
        resume(Effect.succeed({
          echo,
          close: () => {
            server.close()
            server.closeAllConnections()
          }
        }))
      })
    }),
    ({ close }) => Effect.sync(close)
  ).pipe(Effect.map(({ echo }) => echo)))
}

const world = Layer.unwrap(Effect.map(Echo, ({ url }) => ProxyServer.layer({ stripeKey: Redacted.make(realKey), upstream: url, port: 0 }))).pipe(
  Layer.provideMerge(Layer.merge(VaultStore.layer, VaultAdmin.layer)),
  Layer.provideMerge(ProxyDatabase.migrated(Database.layerMemory)),
  Layer.provideMerge(Echo.layer)
)

const until = (condition: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => condition() ? Effect.void : Effect.andThen(Effect.sleep(5), until(condition)))

/** A fresh vault, and an upstream that answers like this. */
const with_ = Effect.fnUntraced(function*(handler: Handler, vault: Partial<NewVault> = {}) {
  const echo = yield* Echo
  const { id, key } = yield* makeVault(vault)
  echo.handler = handler
  echo.seen.length = 0
  return { echo, id, vaultKey: key, proxy: yield* ProxyServer }
})

const paidCharge = JSON.stringify({ object: "charge", id: "ch_1", status: "succeeded", amount: 100 })
const pays: Handler = (_, response) => void response.writeHead(200, { "content-type": "application/json", "request-id": "req_1" }).end(paidCharge)

layer(world, { excludeTestServices: true })("through the proxy", (it) => {
  it.effect("a form arrives byte for byte, with every header but the credentials", () =>
    Effect.gen(function*() {
      const { echo, proxy, vaultKey } = yield* with_(pays)
      const body = "amount=100&currency=usd&customer=cus_1&expand[0]=customer&metadata[a b]=%27x%27+y%20z&description=caf%C3%A9".replace("a b", "a%20b")
      yield* raw(proxy, "/v1/charges", {
        vaultKey, key: "bytes", body,
        headers: {
          "Stripe-Version": "2026-10-28.endive", "Stripe-Account": "acct_1", "Stripe-Context": "ctx_1", "X-Stripe-Client-User-Agent": "{\"lang\":\"x\"}",
          "X-Stripe-Client-Telemetry": "{}", "User-Agent": "Stripe/v1 test", "X-Twice": ["a", "b"], "Connection": "close, x-local", "X-Local": "1", "Cookie": "c=1"
        }
      })
      const [seen] = echo.seen
      assert.strictEqual(seen!.body.toString(), body)
      const { headers } = seen!
      assert.strictEqual(headers.authorization, `Bearer ${realKey}`)
      assert.strictEqual(headers["idempotency-key"], "bytes")
      assert.strictEqual(headers["stripe-version"], "2026-10-28.endive")
      assert.strictEqual(headers["stripe-account"], "acct_1")
      assert.strictEqual(headers["stripe-context"], "ctx_1")
      assert.strictEqual(headers["x-stripe-client-user-agent"], "{\"lang\":\"x\"}")
      assert.strictEqual(headers["user-agent"], "Stripe/v1 test")
      assert.strictEqual(headers["x-twice"], "a, b")
      assert.strictEqual(headers["content-length"], String(body.length))
      assert.strictEqual(headers.host, new URL(echo.url).host)
      assert.strictEqual(headers["x-local"], undefined)
      assert.strictEqual(headers.cookie, "c=1")
      assert.notInclude(seen!.raw.join("\n"), vaultKey)
    }))

  it.effect("Basic authentication opens the vault like a Bearer token", () =>
    Effect.gen(function*() {
      const { echo, proxy, vaultKey } = yield* with_(pays)
      const got = yield* raw(proxy, "/v1/charges", {
        key: "basic", body: "amount=100&currency=usd", headers: { authorization: `Basic ${Buffer.from(`${vaultKey}:`).toString("base64")}` }
      })
      assert.strictEqual(got.status, 200)
      assert.strictEqual(echo.seen[0]!.headers.authorization, `Bearer ${realKey}`)
    }))

  it.effect("status, headers and bytes of an answer come back as they are, for calls that are read and calls that are not", () =>
    Effect.gen(function*() {
      const answer: Handler = (_, response) =>
        void response.writeHead(418, ["Content-Type", "text/x", "Request-Id", "req_9", "Stripe-Should-Retry", "true", "Original-Request", "req_8", "Set-Cookie", "a=1", "Set-Cookie", "b=2",
          "Stripe-Rate-Limited-Reason", "global-rate", "Stripe-Notice", "n", "Idempotent-Replayed", "true"]).end(Buffer.from([0, 255, 1, 254]))
      const { proxy, vaultKey } = yield* with_(answer)
      for (const got of [
        yield* raw(proxy, "/v1/charges", { vaultKey, key: "answer", body: "amount=100&currency=usd" }),
        yield* raw(proxy, "/v1/charges/ch_1?expand[]=customer", { vaultKey })
      ]) {
        assert.strictEqual(got.status, 418)
        assert.deepStrictEqual([...got.bytes], [0, 255, 1, 254])
        assert.strictEqual(got.headers["request-id"], "req_9")
        assert.strictEqual(got.headers["stripe-should-retry"], "true")
        assert.strictEqual(got.headers["original-request"], "req_8")
        assert.strictEqual(got.headers["idempotent-replayed"], "true")
        assert.strictEqual(got.headers["stripe-rate-limited-reason"], "global-rate")
        assert.strictEqual(got.headers["stripe-notice"], "n")
        assert.deepStrictEqual(got.headers["set-cookie"], ["a=1", "b=2"])
        assert.strictEqual(got.headers["x-spend-proxy"], undefined)
      }
    }))

  it.effect("a query arrives as it was written, and a redirect is not followed", () =>
    Effect.gen(function*() {
      const { echo, proxy, vaultKey } = yield* with_((_, response) => void response.writeHead(302, { location: "http://127.0.0.1:1/" }).end())
      const query = "?query=metadata[%27k%27]:%27v%27&expand[]=data.customer&limit=3"
      const got = yield* raw(proxy, `/v1/charges/search${query}`, { vaultKey })
      assert.strictEqual(got.status, 302)
      assert.strictEqual(got.headers["location"], "http://127.0.0.1:1/")
      assert.deepStrictEqual(echo.seen.map(({ url }) => url), [`/v1/charges/search${query}`])
    }))

  it.effect("a multipart upload of 8 MiB and a download of 8 MiB stream through unchanged", () =>
    Effect.gen(function*() {
      const large = Buffer.alloc(8 * 1024 * 1024, Buffer.from("0123456789abcdef\0\xff", "latin1"))
      const { echo, proxy, vaultKey } = yield* with_((request, response) => {
        if (request.method === "POST") return void response.end("{\"object\":\"file\"}")
        response.writeHead(200, { "content-type": "application/pdf" })
        response.end(large)
      }, { allow: ["POST:/v1/files", "GET:/v1/**"] })
      const type = "multipart/form-data; boundary=----b"
      const up = yield* raw(proxy, "/v1/files", { vaultKey, body: large, headers: { "content-type": type } })
      assert.strictEqual(up.status, 200)
      assert.strictEqual(echo.seen[0]!.headers["content-type"], type)
      assert.isTrue(echo.seen[0]!.body.equals(large))
      const down = yield* raw(proxy, "/v1/files/file_1/contents", { vaultKey })
      assert.strictEqual(down.headers["content-type"], "application/pdf")
      assert.isTrue(down.bytes.equals(large))
    }))

  it.effect("an answer begins to arrive before it has ended", () =>
    Effect.gen(function*() {
      let finish = () => {}
      const { proxy, vaultKey } = yield* with_((_, response) => {
        response.write("first")
        finish = () => void response.end("last")
      })
      const text = yield* Effect.callback<string>((resume) => {
        const request = httpRequest({ host: proxy.host, port: proxy.port, path: "/v1/events", headers: { authorization: `Bearer ${vaultKey}` } }, (response) => {
          let all = ""
          response.on("data", (chunk) => {
            all += String(chunk)
            // Only what has arrived lets the upstream go on.
            if (all === "first") finish()
          })
          response.on("end", () => resume(Effect.succeed(all)))
        })
        request.end()
      })
      assert.strictEqual(text, "firstlast")
    }))

  it.effect("connections are kept on both sides", () =>
    Effect.gen(function*() {
      const { echo, proxy, vaultKey } = yield* with_(pays, { expectedMinor: 10_000 })
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      const ports = new Set<number | undefined>()
      for (let at = 0; at < 5; at++) {
        yield* Effect.callback<void>((resume) => {
          const request = httpRequest({
            host: proxy.host, port: proxy.port, path: "/v1/charges", method: "POST", agent,
            headers: { authorization: `Bearer ${vaultKey}`, "idempotency-key": `keep-${at}`, "content-type": "application/x-www-form-urlencoded" }
          }, (response) => {
            ports.add(response.socket.localPort)
            response.resume().on("end", () => resume(Effect.void))
          })
          request.end("amount=100&currency=usd")
        })
      }
      agent.destroy()
      assert.strictEqual(ports.size, 1)
      assert.strictEqual(new Set(echo.seen.map(({ socket }) => socket)).size, 1)
    }))

  it.effect("a client that leaves does not end its call: the money that moved is counted", () =>
    Effect.gen(function*() {
      let finish = () => {}
      const { echo, id, proxy, vaultKey } = yield* with_((request, response, body) => {
        finish = () => pays(request, response, body)
      })
      const client = yield* Effect.forkChild(raw(proxy, "/v1/charges", { vaultKey, key: "leaves", body: "amount=100&currency=usd" }))
      yield* until(() => echo.seen.length === 1)
      yield* Fiber.interrupt(client)
      const { socket } = echo.seen[0]!
      // The proxy has seen its client leave when it answers another of the same moment.
      yield* raw(proxy, "/v1/none", {})
      assert.isFalse(socket.destroyed)
      finish()
      const settled: Effect.Effect<void, never, VaultAdmin | VaultStore> = Effect.suspend(() =>
        Effect.flatMap(Effect.orDie(used(id)), ({ paidMinor }) => paidMinor === 100 ? Effect.void : Effect.andThen(Effect.sleep(5), settled)))
      yield* settled
      assert.deepStrictEqual(yield* used(id), { heldMinor: 0, paidMinor: 100, payments: 1, calls: 1 })
    }))

  it.effect("a POST is sent once, whatever becomes of it, and an answer that is cut ends the client's connection", () =>
    Effect.gen(function*() {
      const cuts: ReadonlyArray<Handler> = [
        (request) => void request.socket.resetAndDestroy(),
        (request) => void request.socket.destroy(),
        (_, response) => {
          response.writeHead(200, { "content-length": 100 })
          response.write("{", () => response.socket?.destroy())
        }
      ]
      for (const [at, cut] of cuts.entries()) {
        const { echo, id, proxy, vaultKey } = yield* with_(cut)
        const broken = yield* Effect.flip(raw(proxy, "/v1/charges", { vaultKey, key: `cut-${at}`, body: "amount=100&currency=usd" }))
        assert.strictEqual(broken.code, "ECONNRESET")
        assert.strictEqual(echo.seen.length, 1)
        // Nobody knows: the room stays taken, and another key gets none of it.
        assert.deepStrictEqual(yield* used(id), { heldMinor: 100, paidMinor: 0, payments: 0, calls: 1 })
        // The same key again settles it, without being counted twice.
        echo.handler = pays
        assert.strictEqual((yield* raw(proxy, "/v1/charges", { vaultKey, key: `cut-${at}`, body: "amount=100&currency=usd" })).status, 200)
        assert.deepStrictEqual(yield* used(id), { heldMinor: 0, paidMinor: 100, payments: 1, calls: 1 })
      }
    }))

  it.effect("what is sent in pieces, pipelined or broken off is read as one request, or not at all", () =>
    Effect.gen(function*() {
      const { echo, proxy, vaultKey } = yield* with_(pays)
      const head = (length: number) =>
        `POST /v1/charges HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${vaultKey}\r\nIdempotency-Key: half\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${length}\r\n\r\n`
      // A client that leaves before its form is whole has asked for nothing.
      yield* Effect.callback<void>((resume) => {
        const socket = connect(proxy.port, proxy.host, () => socket.write(`${head(500)}amount=100`, () => {
          socket.destroy()
          resume(Effect.void)
        }))
      })
      yield* raw(proxy, "/v1/charges/ch_1", { vaultKey })
      assert.deepStrictEqual(echo.seen.map(({ method }) => method), ["GET"])
      // Two lengths are two readings: nothing is read.
      const smuggled = yield* Effect.callback<string>((resume) => {
        let text = ""
        const socket = connect(proxy.port, proxy.host, () =>
          socket.write(`${head(5).replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n")}0\r\n\r\n`))
        socket.on("data", (data) => text += String(data))
        socket.on("close", () => resume(Effect.succeed(text)))
      })
      assert.match(smuggled, /^HTTP\/1\.1 400/)
      assert.strictEqual(echo.seen.length, 1)
    }))
})
