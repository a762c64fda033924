/** The console in a program's own server, and the vault keys of a proxy's store beside it. */
import { assert, layer } from "@effect/vitest"
import { postgresUrlEmpty } from "@purser/postgres/TestDatabase"
import { ProxyDatabase, VaultAdmin } from "@purser/spend-cap-proxy"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import { HttpEffect, HttpRouter, HttpServerResponse } from "effect/http"
import type { AccessOptions } from "../src/Access.ts"
import { Console } from "../src/Console.ts"
import { asking, open, world } from "./support.ts"

/** A server that knows its people by a header of its own. */
const known: AccessOptions = {
  identify: (request) => {
    const user = request.headers["x-user"]
    return Effect.succeed(user === undefined ? undefined : { actor: user, role: user === "grace" ? "operator" : "viewer" })
  },
  secureCookie: true
}

layer(world(known), { timeout: 60_000, excludeTestServices: true })("a console in another server", (it) => {
  it.effect("lets in whom the server knows, under its path, beside the server's own routes", () =>
    Effect.gen(function*() {
      const app = yield* HttpRouter.toHttpEffect(Layer.mergeAll(
        Console.layerRoute("/ops/purser"),
        HttpRouter.add("GET", "/own", HttpServerResponse.text("mine"))
      ))
      const handle = HttpEffect.toWebHandler(app)
      const ask = (path: string, headers: Readonly<Record<string, string>> = {}, init: RequestInit = {}) =>
        Effect.promise(async () => {
          const response = await handle(new Request(`http://shop.example${path}`, { redirect: "manual", headers, ...init }))
          return { status: response.status, location: response.headers.get("location"), csp: response.headers.get("content-security-policy"), text: await response.text() }
        })
      const own = yield* ask("/own")
      assert.deepStrictEqual([own.status, own.text, own.csp], [200, "mine", null])
      assert.deepStrictEqual((({ location, status }) => [status, location])(yield* ask("/ops/purser")), [308, "/ops/purser/"])
      // Whoever hands it all requests gets no address of ours for a stranger's.
      const alone = yield* Console.webHandler("/ops/purser")
      for (const path of ["/", "/shop", "/ops", "/ops/pursers", "/ops/purser-of-mine/"]) {
        assert.strictEqual((yield* Effect.promise(() => alone(new Request(`http://shop.example${path}`)))).status, 404, path)
      }
      const page = yield* ask("/ops/purser/")
      // What the page loads is named from where it stands.
      for (const [, source] of page.text.matchAll(/(?:src|href)="([^"]+)"/g)) assert.match(source!, /^(?:\.\/|docs)/)
      const script = /src="\.\/(assets\/[^"]+)"/.exec(page.text)?.[1]
      assert.strictEqual((yield* ask(`/ops/purser/${script}`)).status, 200)
      assert.strictEqual((yield* ask("/ops/purser/api/session")).status, 401)
      const session = JSON.parse((yield* ask("/ops/purser/api/session", { "x-user": "grace" })).text) as { readonly actor: string; readonly role: string; readonly csrf: string }
      assert.deepStrictEqual([session.actor, session.role], ["grace", "operator"])
      const body = { method: "POST", body: JSON.stringify({ reason: "a drill" }) }
      const json = { "content-type": "application/json" }
      assert.strictEqual((yield* ask("/ops/purser/api/charging/pause", { "x-user": "grace", ...json }, body)).status, 403)
      assert.strictEqual((yield* ask("/ops/purser/api/charging/pause", { "x-user": "heidi", "x-purser-csrf": session.csrf, ...json }, body)).status, 403)
      assert.strictEqual((yield* ask("/ops/purser/api/charging/pause", { "x-user": "grace", "x-purser-csrf": session.csrf, ...json }, body)).status, 200)
    }))
})

const proxyStore = Layer.unwrap(Effect.map(postgresUrlEmpty, (url) => {
  const keys = { PURSER_PROXY_DATABASE_URL: Redacted.value(url) }
  const admin = VaultAdmin.layer.pipe(
    Layer.provide(ProxyDatabase.layerConfig),
    Layer.provide(Layer.succeed(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(keys)))
  )
  return Layer.merge(world(open, keys), admin)
}))

layer(proxyStore, { timeout: 60_000, excludeTestServices: true })("vault keys at the console", (it) => {
  it.effect("are shown by their last characters, switched off and revoked with a reason", () =>
    Effect.gen(function*() {
      const admin = yield* VaultAdmin
      const { key, vault } = yield* admin.create({
        name: "legacy job", billingPeriod: "2026-07", currency: "usd", expectedMinor: 100_000, headroomPercent: 110, allow: [], customers: null,
        maxPerChargeMinor: null, maxCalls: null, duplicateGuard: true, expiresAtMs: null
      })
      const ask = yield* asking()
      const headers = { "x-purser-csrf": String((yield* ask("/api/session")).json["csrf"]) }
      const shown = yield* ask("/api/vaults")
      assert.strictEqual(shown.status, 200, shown.text)
      assert.notInclude(shown.text, Redacted.value(key))
      const [first] = shown.json["vaults"] as ReadonlyArray<{ readonly capMinor: number; readonly keys: ReadonlyArray<{ readonly hint: string }> }>
      assert.deepStrictEqual([first?.capMinor, first?.keys[0]?.hint], [110_000, Redacted.value(key).slice(-4)])
      assert.strictEqual((yield* ask("/api/vaults/kill", { body: { killed: true, reason: "" }, headers })).status, 400)
      assert.strictEqual((yield* ask("/api/vaults/kill", { body: { killed: true, reason: "a leak" }, headers })).status, 200)
      const killed = yield* ask("/api/vaults")
      assert.isTrue(killed.json["killed"])
      assert.include(JSON.stringify(killed.json["log"]), "ada: a leak")
      assert.strictEqual((yield* ask("/api/vaults/kill", { body: { killed: false, reason: "mended" }, headers })).status, 200)
      assert.strictEqual((yield* ask("/api/vaults/revoke", { body: { vault: vault.id, reason: "the job is gone" }, headers })).status, 200)
      for (const [path, body, text] of [
        ["/api/vaults/kill", { killed: false, reason: "once more" }, "vault keys were on before (nothing changed)"],
        ["/api/vaults/revoke", { vault: vault.id, reason: "once more" }, "its keys were over before (nothing changed)"]
      ] as const) {
        assert.deepStrictEqual((yield* ask(path, { body, headers })).json, { text })
      }
      const after = (yield* ask("/api/vaults")).json as { readonly killed: boolean; readonly vaults: ReadonlyArray<{ readonly keys: ReadonlyArray<{ readonly revokedAtMs: number | null }> }> }
      assert.deepStrictEqual([after.killed, after.vaults[0]?.keys.every(({ revokedAtMs }) => revokedAtMs !== null)], [false, true])
    }))
})
