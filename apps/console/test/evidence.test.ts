/** What a person decides by: a charge's whole story, with who planned it and the ids of Stripe's support; conflicts of every way, one by one and several at once. */
import { assert, layer } from "@effect/vitest"
import { ChargeServer, chargeKeyOf, DeadLetters, Principal, RunLedger, RunRegistry } from "@purser/core"
import { ChargeWorker, Sweeper } from "@purser/engine"
import { chargeFor } from "@purser/testkit"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { asking, charged, client, locked, openCap, pipeline, secrets, world } from "./support.ts"

const runs = ["one", "two"] as const

/** Two runs that say other terms of the same charge than the ledger holds. */
const conflicting = (customer: string) =>
  Effect.gen(function*() {
    const book = yield* RunLedger
    const request = chargeFor(customer, "2026-07", { amountMinor: 999, paymentMethod: "pm_card_visa" })
    for (const name of runs) {
      const runId = `${customer}-${name}`
      yield* book.begin({ runId, source: `/files/${name}.csv` })
      yield* book.stage(runId, [{ line: 2, chargeKey: chargeKeyOf(request), request }])
      yield* book.plan(runId)
    }
  })

/** A worker whose transport is the test itself: what it serves is asked under a principal. */
const served = (principal: string | null) => {
  const server = Layer.succeed(ChargeServer, ChargeServer.of({
    serve: (handler) => Effect.andThen(Effect.provideService(Effect.ignore(handler(chargeFor("sender", "2026-07", { amountMinor: 4200, paymentMethod: "pm_card_visa" }))), Principal, principal), Effect.never)
  }))
  const worker = ChargeWorker.layerNoDeps.pipe(Layer.provide(Sweeper.layerNoDeps), Layer.provide(pipeline), Layer.provide(server))
  return Effect.flatMap(ChargeWorker, ({ run }) => Effect.forkScoped(run)).pipe(Effect.provide(worker))
}

layer(world(locked, { PURSER_SWEEP: "false" }), { timeout: 120_000, excludeTestServices: true })("what the console knows of a charge", (it) => {
  it.effect("its story names the run and who began it, each call to Stripe by its request id, and every step", () =>
    Effect.gen(function*() {
      yield* openCap
      const api = yield* client
      const book = yield* RunLedger
      const registry = yield* RunRegistry
      const request = chargeFor("storied", "2026-07", { paymentMethod: "pm_card_visa", amountMinor: 2500 })
      yield* registry.register({ runId: "r-story", name: "july", state: "running", definition: "command", params: {}, options: null, actor: "hedy" })
      yield* book.begin({ runId: "r-story", source: "/files/july.csv" })
      yield* book.stage("r-story", [{ line: 7, chargeKey: chargeKeyOf(request), request }])
      yield* book.plan("r-story")
      const { chargeKey } = yield* charged("storied")
      const story = yield* Effect.repeat(api.charges.story({ params: { chargeKey } }), { until: ({ lines }) => lines.filter(({ kind }) => kind === "call").length >= 2 })
      assert.deepStrictEqual(story.runs.map(({ actor, line, name, runId }) => [runId, name, line, actor]), [["r-story", "july", 7, "hedy"]])
      const [planned] = story.lines
      assert.deepStrictEqual([planned?.to, planned?.who, planned?.runId, planned?.detail], ["planned", "hedy", "r-story", "line 7 of july.csv"])
      const calls = story.lines.filter(({ kind }) => kind === "call")
      assert.deepStrictEqual(calls.map(({ to }) => to), ["create 200", "confirm 200"])
      assert.isTrue(calls.every(({ requestId }) => /^req_\w+$/.test(requestId ?? "")), JSON.stringify(calls))
      assert.strictEqual(new Set(calls.map(({ requestId }) => requestId)).size, 2)
      assert.deepStrictEqual(story.lines.filter(({ kind }) => kind === "charge").map(({ to }) => to), ["planned", "claimed", "attached", "succeeded"])
      assert.isTrue(story.lines.filter(({ kind, to }) => kind === "charge" && to !== "planned").every(({ who }) => who !== null))
    }))

  it.effect("several conflicts end with one reason; what somebody else has ended is told for its row", () =>
    Effect.gen(function*() {
      yield* openCap
      const api = yield* client
      yield* charged("several")
      yield* conflicting("several")
      const open = Effect.map(api.attention.list(), ({ conflicts }) => conflicts.filter(({ charge }) => charge.customerId === "several").map(({ line, runId }) => ({ runId, line })))
      const conflicts = yield* open
      assert.strictEqual(conflicts.length, 2)
      yield* api.attention.keepCharge({ payload: { ...conflicts[0]!, reason: "by itself" } })
      const { results } = yield* api.attention.keepCharges({ payload: { conflicts, reason: "an old list" } })
      assert.deepStrictEqual(results.map(({ done, runId }) => [runId, done]), [["several-one", false], ["several-two", true]])
      assert.strictEqual(results[0]?.text, "no such conflict is open")
      assert.deepStrictEqual(yield* open, [])
      const { acts } = yield* api.session.acts({ query: { limit: 10 } })
      const words = acts.map(({ act, actor, reason, subject }) => `${actor} ${act} ${subject}: ${reason}`)
      assert.includeMembers(words, ["grace drop conflict several-two, line 2: an old list", "grace drop conflict: not done several-one, line 2: an old list"])
    }))

  it.effect("a conflicting request waits with its terms, its sender and how often it came, until a person drops it; it comes back if it does", () =>
    Effect.gen(function*() {
      yield* openCap
      const api = yield* client
      const { chargeKey } = yield* charged("sender")
      const kept = (times: number) =>
        Effect.map(
          Effect.repeat(api.attention.list(), { until: ({ conflicts }) => conflicts.some(({ charge, ...conflict }) => charge.customerId === "sender" && conflict.times === times) }),
          ({ conflicts }) => conflicts.filter(({ charge }) => charge.customerId === "sender")
        )
      yield* served("shop-1")
      yield* kept(1)
      yield* served("shop-1")
      const [conflict, ...more] = yield* kept(2)
      assert.deepStrictEqual(more, [])
      assert.deepStrictEqual(
        [conflict?.runId, conflict?.principal, conflict?.amountMinor, conflict?.charge.amountMinor, conflict?.charge.state],
        ["", "shop-1", 4200, 2500, "succeeded"]
      )
      yield* api.attention.keepCharge({ payload: { runId: "", line: conflict!.line, reason: "told the shop" } })
      assert.deepStrictEqual((yield* api.attention.list()).conflicts.filter(({ charge }) => charge.customerId === "sender"), [])
      const story = yield* api.charges.story({ params: { chargeKey } })
      assert.isTrue(story.lines.some(({ detail }) => detail === "the other terms of a request by shop-1 were dropped by grace: told the shop"))
      assert.isNumber(story.conflicts[0]?.resolvedAtMs)
      yield* served("shop-1")
      yield* kept(3)
    }))

  it.effect("a secret in what a stranger wrote is in no answer, and is kept as it came", () =>
    Effect.gen(function*() {
      yield* openCap
      const ask = yield* asking()
      const letters = yield* DeadLetters
      const sql = yield* SqlClient.SqlClient
      const headers = { authorization: `Bearer ${secrets.operator}` }
      const others = ["rk_live_51HabcdefGHIJ", `vk_${"0a".repeat(24)}`, "whsec_0123456789abcdef", "hush-hush"]
      const secretText = `${secrets.stripeKey} ${secrets.viewer} ${others.slice(0, 3).join(" ")} postgres://led:${others[3]}@db/led`
      // The second one would be cut within the key.
      const bodies = [`{"api_key":"${secrets.stripeKey}","of":"${secretText}"}`, `${" ".repeat(3990)}${secrets.stripeKey}`].map((text) => new TextEncoder().encode(text))
      for (const body of bodies) yield* letters.bury({ transport: "req-rep", principal: null, reason: "MalformedMessage", detail: `no such field: ${secretText}`, body })
      const { chargeKey } = yield* charged("leaky")
      yield* sql`update purser.charges set quarantine = ${`somebody wrote ${secretText}`} where charge_key = ${chargeKey}`
      const attention = yield* Effect.repeat(ask("/api/attention", { headers }), { until: ({ json }) => (json["letters"] as ReadonlyArray<unknown>).length === 2 })
      const answers = [attention, yield* ask(`/api/charges/${chargeKey}`, { headers }), yield* ask("/api/charges?customer=leaky", { headers })]
      for (const { status, text } of answers) {
        assert.strictEqual(status, 200)
        assert.include(text, "somebody wrote [secret]")
        for (const secret of [...Object.values(secrets), secrets.stripeKey.slice(0, 12), ...others]) assert.notInclude(text, secret)
      }
      assert.include(attention.text, "{\\\"api_key\\\":\\\"[secret]")
      assert.sameDeepMembers((yield* letters.list(10)).map(({ body }) => new TextDecoder().decode(body)), bodies.map((body) => new TextDecoder().decode(body)))
    }))

  it.effect("a NUL in a text is the asker's mistake, wherever it stands", () =>
    Effect.gen(function*() {
      const ask = yield* asking()
      const headers = { authorization: `Bearer ${secrets.operator}` }
      const nul = "a\0b"
      const gets = ["customer", "period", "paymentIntent", "after"].map((field) => `/api/charges?${field}=${encodeURIComponent(nul)}`)
      for (const url of [...gets, `/api/totals?period=${encodeURIComponent(nul)}`, `/api/runs/${encodeURIComponent(nul)}`]) {
        const { json, status } = yield* ask(url, { headers })
        assert.deepStrictEqual([status, json["_tag"]], [400, "BadRequest"], url)
      }
      const scope = { namespace: nul, billingPeriod: "2026-07", currency: "usd", reason: "why not" }
      const posts: ReadonlyArray<readonly [string, unknown]> = [
        ["/api/charging/pause", { reason: `because ${nul}` }],
        [`/api/runs/${encodeURIComponent(nul)}/pause`, { reason: "why not" }],
        [`/api/charges/${"0".repeat(32)}/retry`, { reason: "why not", paymentMethod: nul }],
        ["/api/attention/conflicts/keep", { runId: nul, line: 1, reason: "why not" }],
        ["/api/attention/conflicts/keep-many", { conflicts: [{ runId: nul, line: 1 }], reason: "why not" }],
        ["/api/attention/letters/discard", { digests: [nul], reason: "why not" }],
        ["/api/caps/close", scope],
        ["/api/caps/raise", { ...scope, namespace: "n", expectedTotal: nul, headroomPercent: 110 }],
        ["/api/vaults/revoke", { vault: nul, reason: "why not" }],
        ["/api/reconcile", { billingPeriod: nul, sinceMs: 0, dryRun: true, reason: "why not" }],
        ["/api/reconcile/unlist", { id: nul, reason: "why not" }],
        ["/api/sign-in", { token: "x", actor: nul }]
      ]
      for (const [url, body] of posts) {
        const { json, status } = yield* ask(url, { body, headers })
        assert.deepStrictEqual([status, json["_tag"]], [400, "BadRequest"], url)
      }
      // A place of the list that somebody made up by hand.
      const place = Buffer.from(JSON.stringify({ customerId: nul, billingPeriod: "2026-07", chargeKey: "0".repeat(32) })).toString("base64url")
      assert.isBelow((yield* ask(`/api/charges?after=${place}`, { headers })).status, 500)
    }))
})
