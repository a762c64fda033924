/** Who comes in, who may act, and what a browser is told; nothing that anybody is shown holds a secret. */
import { assert, describe, layer, it } from "@effect/vitest"
import { ChargePause, OperatorTrail } from "@purser/core"
import { PgOperatorTrail } from "@purser/postgres"
import { ConfigProvider, Effect, Fiber, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { TestClock } from "effect/testing"
import { Access } from "../src/Access.ts"
import { consoleSettings } from "../src/ConsoleConfig.ts"
import { contentSecurityPolicy } from "../src/Guard.ts"
import { asking, locked, open, secrets, world } from "./support.ts"

const reads = ["/api/session", "/api/runs", "/api/charges", "/api/totals", "/api/attention", "/api/caps", "/api/workers", "/api/reconcile", "/api/acts"]
const pause = { reason: "a drill" }
const acts = Effect.flatMap(OperatorTrail, (trail) => trail.acts(null, 100)).pipe(Effect.provide(PgOperatorTrail.layer))

layer(world(open), { timeout: 60_000, excludeTestServices: true })("a console where nobody signs in", (it) => {
  it.effect("acts only with the proof that its own page has, and keeps who did it", () =>
    Effect.gen(function*() {
      const ask = yield* asking()
      const session = yield* ask("/api/session")
      assert.strictEqual(session.status, 200)
      const csrf = String(session.json["csrf"])
      assert.deepStrictEqual([session.json["actor"], session.json["role"], session.json["canSignOut"]], ["ada", "operator", false])
      for (const headers of [{}, { "x-purser-csrf": "" }, { "x-purser-csrf": `${csrf}x` }]) {
        const refused = yield* ask("/api/charging/pause", { body: pause, headers })
        assert.deepStrictEqual([refused.status, refused.json["_tag"]], [403, "NotAllowed"])
      }
      assert.deepStrictEqual(yield* (yield* ChargePause).inForce, [])
      assert.strictEqual((yield* acts).length, 0)
      const done = yield* ask("/api/charging/pause", { body: pause, headers: { "x-purser-csrf": csrf } })
      assert.deepStrictEqual([done.status, done.json["text"]], [200, "charging is paused"])
      assert.deepStrictEqual((yield* (yield* ChargePause).inForce).map(({ actor, reason }) => [actor, reason]), [["ada", "a drill"]])
      assert.deepStrictEqual((yield* acts).map(({ act, actor, reason, subject }) => [actor, act, subject, reason]), [["ada", "pause", "charging", "a drill"]])
    }))

  it.effect("wants a reason, and keeps what was refused too", () =>
    Effect.gen(function*() {
      const ask = yield* asking()
      const headers = { "x-purser-csrf": String((yield* ask("/api/session")).json["csrf"]) }
      for (const reason of ["", "  ", "x"]) assert.strictEqual((yield* ask("/api/charging/resume", { body: { reason }, headers })).status, 400)
      const none = yield* ask("/api/attention/conflicts/keep", { body: { runId: "r", line: 1, reason: "not there" }, headers })
      assert.deepStrictEqual([none.status, none.json["_tag"]], [409, "ActRefused"])
      assert.deepStrictEqual((yield* acts).slice(0, 2).map(({ act }) => act), ["drop conflict: not done", "drop conflict"])
    }))

  it.effect("says what is wrong with a request, asks no store about it, and repeats no token", () =>
    Effect.gen(function*() {
      const ask = yield* asking()
      const headers = { "x-purser-csrf": String((yield* ask("/api/session")).json["csrf"]) }
      const before = (yield* acts).length
      const answers = [
        [yield* ask("/api/runs?before=-1e308"), "before"],
        [yield* ask("/api/runs?limit=many"), "limit"],
        [yield* ask("/api/charges/xyz"), "32 lower-case hex digits"],
        [yield* ask("/api/attention/conflicts/keep", { body: { runId: "r", line: 99_999_999_999, reason: "too far" }, headers }), "line"],
        [yield* ask("/api/reconcile", { body: { billingPeriod: "2026-07", sinceMs: 1e300, dryRun: true, reason: "too far" }, headers }), "sinceMs"],
        [yield* ask("/api/sign-in", { body: { token: secrets.operator.repeat(40), actor: "eve" } }), "payload"]
      ] as const
      for (const [{ json, status, text }, word] of answers) {
        assert.deepStrictEqual([status, json["_tag"]], [400, "BadRequest"], text)
        assert.include(String(json["message"]), word)
        assert.notInclude(text, secrets.operator)
      }
      assert.strictEqual((yield* ask("/api/runs?before=8.64e15")).status, 200)
      assert.strictEqual((yield* acts).length, before)
      const { paths } = (yield* ask("/openapi.json")).json as { readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, unknown>> }>>>> }
      for (const [path, methods] of Object.entries(paths)) {
        for (const { responses } of Object.values(methods)) if ("400" in responses) assert.include(JSON.stringify(responses["400"]), "BadRequest", path)
      }
      assert.include(JSON.stringify(paths["/api/runs"]?.["get"]?.responses["400"]), "BadRequest")
    }))

  it.effect("is served under its own name alone", () =>
    Effect.gen(function*() {
      const ask = yield* asking()
      for (const host of ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:4280", ""]) {
        assert.strictEqual((yield* ask("/api/session", { headers: { host } })).status, 421, host)
      }
      for (const host of ["localhost", "localhost:4280", "127.0.0.1:4280"]) assert.strictEqual((yield* ask("/api/session", { headers: { host } })).status, 200, host)
    }))

  it.effect("tells browsers to run nothing but its own files, on every answer", () =>
    Effect.gen(function*() {
      const ask = yield* asking()
      const page = yield* ask("/")
      assert.strictEqual(page.status, 200)
      assert.notMatch(page.text, /<script(?![^>]*\bsrc=)/)
      assert.notMatch(page.text, /\son\w+=|style=/)
      assert.notInclude(contentSecurityPolicy, "unsafe")
      for (const path of ["/", "/docs", "/openapi.json", "/nowhere", "/api/session", "/api/nowhere", "/api/charges/xyz"]) {
        const { headers } = yield* ask(path)
        assert.strictEqual(headers.get("content-security-policy"), contentSecurityPolicy, path)
        assert.deepStrictEqual([headers.get("x-content-type-options"), headers.get("referrer-policy"), headers.get("x-frame-options")], ["nosniff", "no-referrer", "DENY"], path)
      }
      assert.strictEqual((yield* ask("/api/session")).headers.get("cache-control"), "no-store")
      assert.strictEqual((yield* ask("/api/session")).headers.get("access-control-allow-origin"), null)
    }))
})

layer(world(locked), { timeout: 60_000, excludeTestServices: true })("a console with tokens", (it) => {
  it.effect("lets nobody in without one, and a viewer look alone", () =>
    Effect.gen(function*() {
      const ask = yield* asking()
      const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
      for (const path of [...reads, "/api/live"]) {
        for (const headers of [{}, bearer(`${secrets.viewer}x`), bearer(""), { cookie: "purser_console=abc.def" }]) {
          assert.strictEqual((yield* ask(path, { headers })).status, 401, path)
        }
      }
      assert.strictEqual((yield* ask("/api/charging/pause", { body: pause })).status, 401)
      assert.deepStrictEqual((yield* ask("/api/session", { headers: bearer(secrets.viewer) })).json["role"], "viewer")
      const refused = yield* ask("/api/charging/pause", { body: pause, headers: bearer(secrets.viewer) })
      assert.deepStrictEqual([refused.status, refused.json["message"]], [403, "your role only looks"])
      const done = yield* ask("/api/charging/pause", { body: pause, headers: { ...bearer(secrets.operator), "x-purser-actor": "deploy robot" } })
      assert.strictEqual(done.status, 200)
      assert.deepStrictEqual((yield* acts).map(({ actor }) => actor), ["deploy robot"])
    }))

  it.effect("a sign-in gives a cookie that no script reads and no other site sends, good until another token is set", () =>
    Effect.gen(function*() {
      const ask = yield* asking()
      const wrong = yield* ask("/api/sign-in", { body: { token: `${secrets.operator}x`, actor: "eve" } })
      assert.deepStrictEqual([wrong.status, wrong.headers.get("set-cookie")], [401, null])
      const signed = yield* ask("/api/sign-in", { body: { token: secrets.operator, actor: "grace" } })
      assert.strictEqual(signed.status, 204)
      const cookie = signed.headers.get("set-cookie") ?? ""
      for (const part of ["HttpOnly", "Secure", "SameSite=Strict", "Path=/", "Max-Age=43200"]) assert.include(cookie, part)
      assert.notInclude(cookie, secrets.operator)
      const headers = { cookie: cookie.split(";")[0]! }
      const session = yield* ask("/api/session", { headers })
      assert.deepStrictEqual([session.json["actor"], session.json["role"], session.json["canSignOut"]], ["grace", "operator", true])
      assert.strictEqual((yield* ask("/api/charging/resume", { body: { reason: "drill over" }, headers })).status, 403)
      const acted = yield* ask("/api/charging/resume", { body: { reason: "drill over" }, headers: { ...headers, "x-purser-csrf": String(session.json["csrf"]) } })
      assert.strictEqual(acted.status, 200)
      // A cookie of which a letter was changed is nobody's.
      const [name = "", value = ""] = headers.cookie.split("=")
      assert.match(name, /^__Host-purser_console_[\w-]{8}$/)
      const [body = "", proof = ""] = value.split(".")
      const forged = Buffer.from(JSON.stringify({ actor: "eve", role: "operator", untilMs: 9e15 })).toString("base64url")
      for (const other of [`${forged}.${proof}`, `${body}.${proof.slice(1)}`, body, `${body}.`]) {
        assert.strictEqual((yield* ask("/api/session", { headers: { cookie: `${name}=${other}` } })).status, 401)
      }
      // One of another console on this host neither helps nor hurts.
      const beside = yield* ask("/api/session", { headers: { cookie: `purser_console_another1=${forged}.${proof}; ${headers.cookie}` } })
      assert.deepStrictEqual([beside.status, beside.json["actor"]], [200, "grace"])
      const out = yield* ask("/api/sign-out", { method: "POST", headers })
      assert.match(out.headers.get("set-cookie") ?? "", new RegExp(`${name}=;.*(?:Max-Age=0|1970)`))
      // Nor does a copy of it open anything more; another sign-in of the same person does.
      assert.strictEqual((yield* ask("/api/session", { headers })).status, 401)
      assert.strictEqual((yield* ask("/api/charging/pause", { body: pause, headers: { ...headers, "x-purser-csrf": String(session.json["csrf"]) } })).status, 401)
      const anew = yield* ask("/api/sign-in", { body: { token: secrets.operator, actor: "grace" } })
      assert.strictEqual((yield* ask("/api/session", { headers: { cookie: (anew.headers.get("set-cookie") ?? "").split(";")[0]! } })).status, 200)
      for (const actor of ["x\ny", "\u001b[2J", "a\u202eb"]) {
        const refused = yield* ask("/api/sign-in", { body: { token: secrets.operator, actor } })
        assert.deepStrictEqual([refused.status, refused.headers.get("set-cookie")], [400, null], JSON.stringify(actor))
        assert.strictEqual((yield* ask("/api/charging/pause", { body: { reason: `because ${actor}` }, headers: { authorization: `Bearer ${secrets.operator}` } })).status, 400)
      }
      // A header holds no more of it than this.
      const named = { authorization: `Bearer ${secrets.operator}`, "x-purser-actor": "a\u009bb" }
      assert.deepStrictEqual((({ json, status }) => [status, json["_tag"]])(yield* ask("/api/charging/pause", { body: pause, headers: named })), [403, "NotAllowed"])
    }))

  it.effect("no answer holds a key, a token or a password", () =>
    Effect.gen(function*() {
      const ask = yield* asking()
      const headers = { authorization: `Bearer ${secrets.operator}` }
      for (const path of [...reads, "/", "/docs", "/openapi.json"]) {
        const { status, text } = yield* ask(path, { headers })
        assert.strictEqual(status, 200, path)
        for (const secret of Object.values(secrets)) assert.notInclude(text, secret, path)
        assert.notMatch(text, /postgres:\/\/[^"@/]*:[^"@/]+@/, path)
      }
    }))
})

layer(world({ ...locked, secureCookie: false }), { timeout: 60_000, excludeTestServices: true })("a console behind a proxy that nobody told it of", (it) => {
  it.effect("gives a cookie for TLS alone to whoever came over TLS", () =>
    Effect.gen(function*() {
      const ask = yield* asking()
      const cookieOver = (headers: Readonly<Record<string, string>>) =>
        Effect.map(ask("/api/sign-in", { body: { token: secrets.operator, actor: "grace" }, headers }), (answer) => answer.headers.get("set-cookie") ?? "")
      assert.match(yield* cookieOver({ "x-forwarded-proto": "https" }), /^purser_console_.*; Secure/)
      for (const headers of [{}, { "x-forwarded-proto": "http" }]) assert.match(yield* cookieOver(headers), /^purser_console_(?!.*Secure)/)
    }))
})

it.effect("a sign-in ends after twelve hours, and a wrong token is answered slowly", () =>
  Effect.gen(function*() {
    const access = yield* Access
    const cookie = yield* access.signIn(Redacted.make(secrets.viewer), "grace", "192.0.2.1")
    const request = HttpServerRequest.fromWeb(new Request("http://localhost/", { headers: { cookie: `${access.cookieName}=${cookie}` } }))
    const [other] = [yield* Effect.provide(Access, Access.layer({ ...locked, viewerToken: Redacted.make("another-token-of-tests") }))]
    assert.notStrictEqual(other.cookieName, access.cookieName)
    assert.strictEqual((yield* access.identify(request))?.actor, "grace")
    yield* TestClock.adjust("11 hours")
    assert.strictEqual((yield* access.identify(request))?.role, "viewer")
    yield* TestClock.adjust("2 hours")
    assert.strictEqual(yield* access.identify(request), undefined)
    const guesses = yield* Effect.forEach(Array.from({ length: 60 }), () => Effect.forkChild(access.signIn(Redacted.make("a guess"), "eve", "192.0.2.6")))
    yield* TestClock.adjust("200 millis")
    // Whoever has the right one waits for no guess, at the same address either.
    assert.isString(yield* access.signIn(Redacted.make(secrets.viewer), "grace", "192.0.2.6"))
    const answered = () => guesses.filter((guess) => guess.pollUnsafe() !== undefined).length
    // More than wait are answered as they come; those that wait, one after the other.
    assert.strictEqual(answered(), 60 - 16)
    yield* TestClock.adjust("200 millis")
    assert.strictEqual(answered(), 60 - 15)
    yield* TestClock.adjust("10 seconds")
    assert.isTrue((yield* Effect.forEach(guesses, Fiber.join)).every((cookie) => cookie === undefined))
  }).pipe(Effect.provide(Access.layer(locked))))

describe("the console's settings", () => {
  const read = (keys: Readonly<Record<string, string>>, flags = {}) =>
    Effect.result(Effect.provideService(consoleSettings(flags), ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(keys)))
  const refused = [
    ["PURSER_CONSOLE_TOKEN", { PURSER_CONSOLE_HOST: "0.0.0.0" }],
    ["PURSER_CONSOLE_HOST", { PURSER_CONSOLE_HOST: "0.0.0.0", PURSER_CONSOLE_TOKEN: "a-long-enough-token" }],
    ["PURSER_CONSOLE_TOKEN", { PURSER_CONSOLE_TOKEN: "short" }],
    ["PURSER_CONSOLE_TOKEN", { PURSER_CONSOLE_PUBLIC_URL: "https://purser.example" }],
    ["PURSER_CONSOLE_PUBLIC_URL", { PURSER_CONSOLE_PUBLIC_URL: "http://purser.example", PURSER_CONSOLE_TOKEN: "a-long-enough-token" }],
    ["PURSER_CONSOLE_VIEWER_TOKEN", { PURSER_CONSOLE_VIEWER_TOKEN: "short" }],
    ["PURSER_CONSOLE_VIEWER_TOKEN", { PURSER_CONSOLE_TOKEN: "a-long-enough-token", PURSER_CONSOLE_VIEWER_TOKEN: "a-long-enough-token" }]
  ] as const
  for (const [setting, keys] of refused) {
    it.effect(`refuse ${JSON.stringify(keys)}`, () =>
      Effect.gen(function*() {
        const result = yield* read(keys)
        assert.strictEqual(result._tag === "Failure" && result.failure._tag === "ConsoleConfigError" ? result.failure.setting : "", setting)
      }))
  }

  it.effect("a loopback console is open to whoever is at the machine; a read-only one has no operator", () =>
    Effect.gen(function*() {
      const result = yield* read({}, { actor: "ada" })
      assert.deepStrictEqual(result._tag === "Success" ? [result.success.host, result.success.access.open, result.success.access.operatorToken] : [], ["127.0.0.1", { actor: "ada", role: "operator" }, undefined])
      const reading = yield* read({ PURSER_CONSOLE_TOKEN: "a-long-enough-token" }, { readOnly: true })
      assert.deepStrictEqual(reading._tag === "Success" ? [reading.success.access.operatorToken, reading.success.access.open] : [], [undefined, undefined])
      const plain = yield* read({ PURSER_CONSOLE_HOST: "0.0.0.0", PURSER_CONSOLE_TOKEN: "a-long-enough-token", PURSER_CONSOLE_ALLOW_PLAIN: "true" })
      assert.strictEqual(plain._tag, "Success")
    }))

  it.effect("a public address makes the cookie one for TLS alone, and is the one name from outside that is answered", () =>
    Effect.gen(function*() {
      const token = { PURSER_CONSOLE_TOKEN: "a-long-enough-token" }
      const doors = (keys: Readonly<Record<string, string>>) =>
        Effect.flatMap(Effect.provideService(consoleSettings({}), ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({ ...token, ...keys })), ({ access }) =>
          Effect.provide(Access, Access.layer(access)))
      const request = HttpServerRequest.fromWeb(new Request("http://localhost/"))
      const secure = yield* doors({ PURSER_CONSOLE_PUBLIC_URL: "https://Purser.example/" })
      assert.deepStrictEqual([secure.cookie(request)?.secure, secure.cookieName.startsWith("__Host-purser_console_")], [true, true])
      assert.deepStrictEqual(["purser.example", "PURSER.example:443", "127.0.0.1:4280", "evil.example", undefined].map(secure.isHost), [true, true, true, false, false])
      const plain = yield* doors({})
      assert.deepStrictEqual([plain.cookie(request)?.secure, plain.cookieName.startsWith("purser_console_"), plain.isHost("any.example")], [false, true, true])
    }))
})
