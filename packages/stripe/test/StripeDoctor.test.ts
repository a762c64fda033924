import { assert, describe, it } from "@effect/vitest"
import { StripeSim } from "@purser/stripe-sim"
import { examineKey, type KeyUse, StripeClient } from "@purser/stripe"
import { Effect, Redacted } from "effect"
import { http, stub } from "./support.ts"

const key = "rk_test_doctor"

/** What is found about a key with these permissions. */
const found = (uses: ReadonlyArray<KeyUse>, permissions: Readonly<Record<string, "read" | "write">>) =>
  Effect.gen(function*() {
    const sim = yield* StripeSim
    yield* sim.permitKey({ key, permissions })
    const report = yield* examineKey(Redacted.make(key), uses).pipe(
      Effect.provide(StripeClient.layer({ key: Redacted.make(key), url: sim.url }))
    )
    // Whatever was asked, nothing was done.
    assert.deepStrictEqual(yield* sim.books, [])
    assert.isTrue((yield* sim.requests).every(({ method, status }) => method === "GET" || status === 403 || status === 404))
    return report
  }).pipe(Effect.provide(StripeSim.layer()))

/** What is found when every answer has this time on it. */
const atDate = (date: string | undefined) =>
  Effect.scoped(Effect.gen(function*() {
    const body = { error: { type: "invalid_request_error", code: "resource_missing", message: "No such customer" } }
    const server = yield* stub(({ socket }) => socket.write(http(404, body, date === undefined ? {} : { date })))
    return yield* examineKey(Redacted.make(key), ["payment_intents"]).pipe(
      Effect.provide(StripeClient.layer({ key: Redacted.make(key), url: server.url }))
    )
  }))

describe("a restricted key", () => {
  it.live("with just what is needed", () =>
    Effect.gen(function*() {
      for (const [uses, permissions] of [
        [["payment_intents"], { payment_intent: "write", customer: "read" }],
        [["charges"], { charge: "write", customer: "read" }],
        [["invoices"], { invoice: "write", payment_intent: "read", customer: "read" }],
        [["payment_intents", "refunds", "reconcile"], {
          payment_intent: "write", charge: "write", invoice: "read", customer: "read", dispute: "read", event: "read"
        }]
      ] as const satisfies ReadonlyArray<readonly [ReadonlyArray<KeyUse>, Readonly<Record<string, "read" | "write">>]>) {
        const { missing, tooMany, unclear, unrestricted } = yield* found(uses, permissions)
        assert.deepStrictEqual({ missing, tooMany, unclear, unrestricted }, { missing: [], tooMany: [], unclear: [], unrestricted: false })
      }
    }))

  it.live("that lacks something: the very permission is named", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual((yield* found(["payment_intents"], { payment_intent: "read", customer: "read" })).missing, ["payment_intent write"])
      assert.deepStrictEqual((yield* found(["payment_intents"], { payment_intent: "write" })).missing, ["customer read"])
      assert.deepStrictEqual((yield* found(["charges", "refunds"], {})).missing, ["charge write", "customer read"])
    }))

  it.live("that may do more: each is named once", () =>
    Effect.gen(function*() {
      const report = yield* found(["payment_intents"], { payment_intent: "write", customer: "write", charge: "read", webhook: "write", balance: "read" })
      assert.deepStrictEqual(report.missing, [])
      assert.deepStrictEqual(report.tooMany, ["charge read", "customer write", "webhook write", "balance read"])
    }))

  it.live("on a connected account has the permissions of Connect", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim
      yield* sim.permitKey({ key, permissions: { payment_intent: "write", customer: "read" }, connect: { payment_intent: "write" } })
      const report = yield* examineKey(Redacted.make(key), ["payment_intents"]).pipe(
        Effect.provide(StripeClient.layer({ key: Redacted.make(key), url: sim.url, account: "acct_1Oslo" }))
      )
      assert.deepStrictEqual(report.missing, ["customer read"])
    }).pipe(Effect.provide(StripeSim.layer())))
})

describe("other keys", () => {
  it.live("an unrestricted one is asked nothing more", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim
      const sk = Redacted.make("sk_test_doctor")
      const report = yield* examineKey(sk, ["payment_intents"]).pipe(Effect.provide(StripeClient.layer({ key: sk, url: sim.url })))
      assert.isTrue(report.unrestricted)
      assert.strictEqual((yield* sim.requests).length, 1)
    }).pipe(Effect.provide(StripeSim.layer())))

  it.live("one that is not valid grants nothing and lacks nothing: it is unclear, and why", () =>
    Effect.gen(function*() {
      const sim = yield* StripeSim
      const invalid = Redacted.make("rk_test_INVALID")
      const report = yield* examineKey(invalid, ["payment_intents"]).pipe(Effect.provide(StripeClient.layer({ key: invalid, url: sim.url })))
      assert.deepStrictEqual([report.missing, report.tooMany], [[], []])
      assert.include(report.unclear, "payment_intent write: the key is not valid")
    }).pipe(Effect.provide(StripeSim.layer())))
})

describe("the clock", () => {
  it.live("is compared with the time on Stripe's answer", () =>
    Effect.gen(function*() {
      const ahead = yield* atDate(new Date(Date.now() - 600_000).toUTCString())
      assert.closeTo(ahead.skewMs ?? 0, 600_000, 30_000)
      const behind = yield* atDate(new Date(Date.now() + 3_600_000).toUTCString())
      assert.closeTo(behind.skewMs ?? 0, -3_600_000, 30_000)
      assert.isNull((yield* atDate(undefined)).skewMs)
      assert.isNull((yield* atDate("no date")).skewMs)
    }))
})
