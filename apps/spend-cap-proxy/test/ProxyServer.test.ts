/** Starting the proxy, and a Stripe that takes no connection. */
import { assert, describe, it } from "@effect/vitest"
import { checkProxy, ProxyServer, VaultDesk } from "@purser/spend-cap-proxy"
import { StripeSim } from "@purser/stripe-sim"
import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { chargeForm, databases, makeVault, proxyLayer, raw, realKey, used, world } from "./support/world.ts"

const [[, database]] = databases
const stripeKey = Redacted.make(realKey)

describe("settings", () => {
  it.effect.each([
    ["a key that is none", { stripeKey: Redacted.make("pk_live_x") }, "PURSER_PROXY_STRIPE_KEY"],
    ["a vault key for the real one", { stripeKey: Redacted.make("vk_000000000000000000000000000000000000000000000000") }, "PURSER_PROXY_STRIPE_KEY"],
    ["an upstream without TLS", { stripeKey, upstream: "http://api.stripe.com" }, "PURSER_PROXY_UPSTREAM"],
    ["an upstream with a path", { stripeKey, upstream: "https://api.stripe.com/v1" }, "PURSER_PROXY_UPSTREAM"],
    ["an upstream with a password", { stripeKey, upstream: "https://u:p@api.stripe.com" }, "PURSER_PROXY_UPSTREAM"],
    ["an address that others reach", { stripeKey, host: "0.0.0.0" }, "PURSER_PROXY_HOST"],
    ["a port that is none", { stripeKey, port: 70_000 }, "PURSER_PROXY_PORT"],
    ["no time", { stripeKey, timeout: 0 }, "PURSER_PROXY_TIMEOUT"],
    ["no connection", { stripeKey, maxConnections: 0 }, "PURSER_PROXY_MAX_CONNECTIONS"]
  ] as const)("%s is refused, without a word of the key", ([, options, setting]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(checkProxy(options))
      assert.strictEqual(error.setting, setting)
      assert.notInclude(error.message, Redacted.value(options.stripeKey))
    }))

  it.effect("the default is Stripe, on loopback, with more patience than an SDK", () =>
    Effect.gen(function*() {
      const settings = yield* checkProxy({ stripeKey })
      assert.deepStrictEqual(
        [settings.upstream.origin, settings.filesUpstream.origin, settings.host, settings.port],
        ["https://api.stripe.com", "https://files.stripe.com", "127.0.0.1", 12_112]
      )
      assert.isAbove(settings.timeoutMs, 80_000)
    }))

  it.live("a taken port is told as one", () =>
    Effect.gen(function*() {
      const { port } = yield* ProxyServer
      const error = yield* Effect.flip(Layer.build(ProxyServer.layer({ stripeKey, port }).pipe(Layer.provide(VaultDesk.layerStores), Layer.provide(database))))
      assert.strictEqual(error._tag, "ProxyListenFailed")
    }).pipe(Effect.scoped, Effect.provide(world(database))))
})

describe("a Stripe that takes no connection", () => {
  it.live("is a 502 in Stripe's shape, and takes no room: nothing was sent", () =>
    Effect.gen(function*() {
      const proxy = yield* ProxyServer
      const { id, key: vaultKey } = yield* makeVault()
      for (const path of ["/v1/charges", "/v1/charges/ch_1", "/v1/payment_intents/pi_1/confirm"]) {
        const body = path === "/v1/charges" ? chargeForm(600) : path.endsWith("confirm") ? "off_session=true" : undefined
        const got = yield* raw(proxy, path, { vaultKey, key: path, ...(body === undefined ? {} : { body }) })
        assert.deepStrictEqual([got.status, got.json.error.code, got.json.error.type], [502, "upstream_unreachable", "api_error"])
      }
      assert.strictEqual((yield* used(id)).heldMinor, 0)
    }).pipe(Effect.provide(
      // A port of loopback that nobody listens on.
      ProxyServer.layer({ stripeKey, upstream: "http://127.0.0.1:1", port: 0 }).pipe(Layer.provideMerge(VaultDesk.layerStores), Layer.provideMerge(database), Layer.provideMerge(StripeSim.layer()))
    )))
})

describe("files", () => {
  it.live("go to Stripe's host for files, and nothing else does", () =>
    Effect.gen(function*() {
      const paths: Array<string> = []
      const files = yield* Effect.acquireRelease(
        Effect.callback<Server>((resume) => {
          const server = createServer((request, response) => {
            paths.push(`${request.method} ${request.url}`)
            request.resume().on("end", () => response.end("{}"))
          })
          server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
        }),
        (server) => Effect.sync(() => {
          server.close()
          server.closeAllConnections()
        })
      )
      const sim = yield* StripeSim
      const filesUpstream = `http://127.0.0.1:${(files.address() as AddressInfo).port}`
      const proxy = Context.get(yield* Layer.build(proxyLayer({ filesUpstream })), ProxyServer)
      const { key: vaultKey } = yield* makeVault({ allow: ["POST:/v1/files", "GET:/v1/**"] })
      yield* raw(proxy, "/v1/files", { vaultKey, body: "--b--", headers: { "content-type": "multipart/form-data; boundary=b" } })
      yield* raw(proxy, "/v1/files/file_1/contents", { vaultKey })
      yield* raw(proxy, "/v1/quotes/qt_1/pdf", { vaultKey })
      yield* raw(proxy, "/v1/charges/ch_1", { vaultKey })
      assert.deepStrictEqual(paths, ["POST /v1/files", "GET /v1/files/file_1/contents", "GET /v1/quotes/qt_1/pdf"])
      assert.deepStrictEqual((yield* sim.requests).map(({ path }) => path), ["/v1/charges/ch_1"])
    }).pipe(Effect.scoped, Effect.provide(world(database))))
})

describe("the audit trail", () => {
  it.live("cannot be changed or shortened, not even by the store's own user", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const { id } = yield* makeVault()
      for (const statement of [`update purser.audit set verdict = 'x'`, `delete from purser.audit where vault_id = '${id}'`, "truncate purser.audit"]) {
        assert.strictEqual((yield* Effect.flip(sql.unsafe(statement)))._tag, "SqlError")
      }
      assert.strictEqual((yield* sql`select 1 from purser.audit where vault_id = ${id}`).length, 1)
    }).pipe(Effect.provide(world(database))))
})
