/** The API as programs use it: by its typed client, by its description, mounted under a path; what it shows is what the books say. */
import { assert, layer } from "@effect/vitest"
import { ChargeKey, chargeKeyOf, DeadLetters, Ledger, RunLedger } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { Effect, Fiber, Stream } from "effect"
import { OpenApi } from "effect/http-api"
import { createElement } from "react"
import { renderToString } from "react-dom/server"
import { ConsoleApi } from "../src/api/ConsoleApi.ts"
import { Last } from "../web/pages/Reconcile.tsx"
import { asking, charged, client, locked, openCap, pipeline, world } from "./support.ts"

const payments = (customer: string) =>
  Effect.map(Effect.flatMap(StripeSim, (sim) => sim.books), (books) => books.filter((entry) => entry.customer === customer).reduce((sum, entry) => sum + entry.payments, 0))

layer(world(locked), { timeout: 120_000, excludeTestServices: true })("the console's API", (it) => {
  it.effect("describes itself: every endpoint is in the description, and on the page of documentation", () =>
    Effect.gen(function*() {
      const ask = yield* asking("/purser")
      const spec = (yield* ask("/openapi.json")).json as unknown as OpenApi.OpenAPISpec
      const page = (yield* ask("/docs")).text
      const paths = Object.entries(OpenApi.fromApi(ConsoleApi).paths)
      assert.isAbove(paths.length, 25)
      for (const [path, methods] of paths) {
        assert.deepStrictEqual(Object.keys(spec.paths[path as never] ?? {}), Object.keys(methods as object), path)
        assert.include(page, `<code>${path}</code>`)
        // What acts asks for a reason.
        const post = (methods as { readonly post?: { readonly operationId: string; readonly requestBody?: unknown } }).post
        if (post !== undefined && !post.operationId.startsWith("signIn")) assert.include(JSON.stringify(post.requestBody), "reason", path)
      }
      assert.notInclude(page, "<script")
      // A program that is made from the description alone knows what an act with a cookie has to bring.
      for (const [path, { post }] of Object.entries(spec.paths)) {
        if (post === undefined || path.startsWith("/api/sign-")) continue
        assert.includeMembers(post.parameters.filter((one) => one.in === "header").map(({ name }) => name), ["x-purser-csrf", "x-purser-actor"], path)
      }
      assert.include(page, "x-purser-csrf")
      assert.include(page, "x-purser-actor")
      assert.deepStrictEqual((yield* ask("")).status, 308)
    }))

  it.effect("finds a charge and tells its whole story; a retry with a reason pays it once", () =>
    Effect.gen(function*() {
      yield* openCap
      const api = yield* client
      const { chargeKey } = yield* charged("decliner", "pm_card_chargeDeclinedInsufficientFunds")
      const page = yield* api.charges.find({ query: { customer: "decl", state: "declined" } })
      assert.deepStrictEqual(page.charges.map(({ amountMinor, state }) => [amountMinor, state]), [[2500, "declined"]])
      const [found] = page.charges
      assert.deepStrictEqual((yield* api.charges.find({ query: { paymentIntent: found!.paymentIntentId! } })).charges.map((line) => line.chargeKey), [chargeKey])
      const story = yield* api.charges.story({ params: { chargeKey } })
      assert.deepStrictEqual(story.lines.filter(({ kind }) => kind === "charge").map(({ to }) => to), ["claimed", "attached", "declined"])
      assert.deepStrictEqual([story.acts, story.advice?.code], [["retry"], "insufficient_funds"])
      const intent = ({ objects }: typeof story) => objects.filter(({ id }) => id === found!.paymentIntentId).map(({ kind, status }) => [kind, status])
      // In Stripe's words, and not in the ledger's.
      assert.deepStrictEqual(intent(story), [["PaymentIntent", "requires_payment_method"]])
      const done = yield* api.charges.retry({ params: { chargeKey }, payload: { reason: "a new card", paymentMethod: "pm_card_visa" } })
      assert.strictEqual(done.text, "It is paid.")
      assert.strictEqual(yield* payments("decliner"), 1)
      const after = yield* api.charges.story({ params: { chargeKey } })
      assert.deepStrictEqual([after.charge.state, after.charge.receivedMinor, after.acts], ["succeeded", 2500, []])
      assert.deepStrictEqual(after.objects.filter(({ role }) => role === "paid" || role === "the money's movement").map(({ kind, status }) => [kind, status]), [["PaymentIntent", "succeeded"], ["Charge", "succeeded"]])
      assert.isTrue(after.lines.some(({ detail, kind, who }) => kind === "operator" && who === "grace" && detail === "a new card (with pm_card_visa)"))
      const again = yield* Effect.flip(api.charges.retry({ params: { chargeKey }, payload: { reason: "once more" } }))
      assert.strictEqual(again._tag, "ActRefused")
      assert.strictEqual(yield* payments("decliner"), 1)
      const nobody = yield* Effect.flip(api.charges.story({ params: { chargeKey: "0".repeat(32) } }))
      assert.strictEqual(nobody._tag, "NotThere")
    }))

  it.effect("a quarantined charge is ended with a reason, gone on with, and paid once", () =>
    Effect.gen(function*() {
      yield* openCap
      const api = yield* client
      const ledger = yield* Ledger
      const request = chargeFor("suspect", "2026-07", { amountMinor: 700 })
      const claim = yield* ledger.claim(request, "w1")
      if (claim._tag !== "Claimed") return yield* Effect.die(claim)
      yield* ledger.quarantine(claim.charge.lease, "a person was not sure")
      const { chargeKey } = claim.charge.lease
      const waiting = yield* api.attention.list()
      assert.deepStrictEqual(waiting.quarantined.map(({ customerId, quarantine }) => [customerId, quarantine]), [["suspect", "a person was not sure"]])
      assert.strictEqual((yield* Effect.flip(api.charges.resume({ params: { chargeKey }, payload: { reason: "just so" } })))._tag, "ActRefused")
      yield* api.attention.endQuarantine({ payload: { chargeKey, reason: "looked at both sides" } })
      assert.strictEqual((yield* api.charges.resume({ params: { chargeKey }, payload: { reason: "go on" } })).text, "It is paid.")
      assert.strictEqual(yield* payments("suspect"), 1)
      assert.strictEqual((yield* ledger.find(ChargeKey.make(chargeKey)))?.state, "succeeded")
      assert.deepStrictEqual((yield* api.attention.list()).quarantined, [])
    }))

  it.effect("a charge that was handed back for later is gone on with at once, and one that somebody has is not", () =>
    Effect.gen(function*() {
      yield* openCap
      const api = yield* client
      const ledger = yield* Ledger
      const request = chargeFor("handed", "2026-07", { amountMinor: 700 })
      const claim = yield* ledger.claim(request, "w1")
      if (claim._tag !== "Claimed") return yield* Effect.die(claim)
      const { chargeKey } = claim.charge.lease
      const goOn = api.charges.resume({ params: { chargeKey }, payload: { reason: "the key is mended" } })
      assert.strictEqual((yield* Effect.flip(goOn))._tag, "ActRefused")
      assert.isTrue(yield* ledger.handBack(claim.charge.lease, 600_000, "it cannot be read"))
      assert.strictEqual((yield* goOn).text, "It is paid.")
      assert.strictEqual(yield* payments("handed"), 1)
      const { lines } = yield* api.charges.story({ params: { chargeKey } })
      assert.isTrue(lines.some(({ detail }) => detail === "to be gone on with at once, by grace: the key is mended"))
    }))

  it.effect("a quarantine that is ended while the object still differs comes back, and nobody pays", () =>
    Effect.gen(function*() {
      yield* openCap
      const api = yield* client
      const ledger = yield* Ledger
      const sim = yield* StripeSim
      const request = chargeFor("differing", "2026-07", { amountMinor: 700 })
      const claim = yield* ledger.claim(request, "w1")
      if (claim._tag !== "Claimed") return yield* Effect.die(claim)
      const { generation, lease } = claim.charge
      const other = yield* Effect.promise(async () => {
        const response = await fetch(`${sim.url}/v1/payment_intents`, {
          method: "POST",
          headers: { authorization: "Bearer sk_test_somebody", "content-type": "application/x-www-form-urlencoded" },
          body: new URLSearchParams({ amount: "999", currency: "usd", customer: request.stripeCustomerId, payment_method: "pm_card_visa" })
        })
        return await response.json() as { readonly id: string }
      })
      yield* ledger.attach({ lease, generation, paymentIntentId: other.id, paymentMethod: "pm_card_visa" })
      yield* ledger.quarantine(lease, "amount is 999, not 700")
      yield* api.attention.endQuarantine({ payload: { chargeKey: lease.chargeKey, reason: "thought it was mended" } })
      const refused = yield* Effect.flip(api.charges.resume({ params: { chargeKey: lease.chargeKey }, payload: { reason: "go on" } }))
      assert.deepStrictEqual([refused._tag, /quarantined/.test(refused.message)], ["ActRefused", true])
      assert.match((yield* ledger.find(lease.chargeKey))?.quarantine ?? "", /amount/)
      assert.strictEqual(yield* payments("differing"), 0)
    }))

  it.effect("shows a run with its states over time, and the cap that it stands under", () =>
    Effect.gen(function*() {
      yield* openCap
      const api = yield* client
      const book = yield* RunLedger
      const requests = Array.from({ length: 5 }, (_, i) => chargeFor(`run${i}`, "2026-07", { amountMinor: 1000 }))
      yield* book.begin({ runId: "r1", source: "/files/bills.csv" })
      yield* book.stage("r1", requests.map((request, index) => ({ line: index + 2, chargeKey: chargeKeyOf(request), request })))
      yield* book.plan("r1")
      for (const request of requests.slice(0, 3)) yield* Effect.flatMap(ChargePipeline, ({ charge }) => charge(request)).pipe(Effect.provide(pipeline))
      const view = yield* api.runs.view({ params: { runId: "r1" } })
      assert.deepStrictEqual(view.groups.map(({ amountMinor, receivedMinor, rows, state }) => [state, rows, amountMinor, receivedMinor]).toSorted(), [["planned", 2, 2000n, 0n], ["succeeded", 3, 3000n, 3000n]])
      assert.deepStrictEqual([view.open, view.slices.at(-1)?.past["succeeded"], view.slices.at(-1)?.waiting], [2, 3, 2])
      assert.isAbove(view.settledPerSecond, 0)
      assert.isNumber(view.leftMs)
      assert.deepStrictEqual(view.caps.map(({ capMinor }) => capMinor), [1_100_000n])
      assert.strictEqual((yield* api.runs.list({ query: {} })).runs[0]?.runId, "r1")
      assert.strictEqual((yield* Effect.flip(api.runs.view({ params: { runId: "nobody" } })))._tag, "NotThere")
      assert.strictEqual((yield* Effect.flip(api.runs.pause({ params: { runId: "nobody" }, payload: { reason: "why not" } })))._tag, "NotThere")
    }))

  it.effect("dead letters are shown with their bytes escaped, and thrown away with a reason", () =>
    Effect.gen(function*() {
      const api = yield* client
      const letters = yield* DeadLetters
      yield* letters.bury({ transport: "req-rep", principal: null, reason: "MalformedMessage", detail: "no JSON", body: new TextEncoder().encode("<script>\u0007\u202e\u0085") })
      const shown = yield* Effect.repeat(api.attention.list(), { until: ({ letters }) => letters.length > 0 })
      assert.strictEqual(shown.letters[0]?.text, "<script>\\u0007\\u202e\\u0085")
      assert.strictEqual((yield* api.attention.discardLetters({ payload: { digests: [shown.letters[0]!.digest], reason: "known and mended" } })).text, "1 thrown away")
      assert.deepStrictEqual((yield* api.attention.list()).letters, [])
      // Somebody else was quicker.
      assert.strictEqual((yield* api.attention.discardLetters({ payload: { digests: [shown.letters[0]!.digest], reason: "once more" } })).text, "no such letter is kept (nothing changed)")
      assert.strictEqual((yield* api.session.acts({ query: { limit: 1 } })).acts[0]?.act, "discard dead letters: nothing changed")
    }))

  it.effect("a cap's figures are set in its own currency, with who and why in its history", () =>
    Effect.gen(function*() {
      yield* openCap
      const api = yield* client
      const scope = { namespace: "zmq-billing", billingPeriod: "2026-07", currency: "usd" }
      const set = yield* api.caps.raise({ payload: { ...scope, expectedTotal: "20000.50", headroomPercent: 120, reason: "more customers" } })
      assert.strictEqual(set.text, "the cap is 24000.60 usd now")
      const { caps, events } = yield* api.caps.list()
      assert.deepStrictEqual(caps.map(({ capMinor }) => capMinor), [2_400_060n])
      assert.deepStrictEqual([events[0]?.act, events[0]?.actor, events[0]?.reason, events[0]?.capBeforeMinor], ["raised", "grace", "more customers", 1_100_000n])
      // What is used is not cut off by a slip of the hand; where it is meant, it is said.
      const used = caps[0]!.reservedMinor
      assert.isAbove(Number(used), 110)
      const low = { ...scope, expectedTotal: "1.00", headroomPercent: 110, reason: "the month is over" }
      const slip = yield* Effect.flip(api.caps.raise({ payload: low }))
      assert.deepStrictEqual([slip._tag, /below the \S+ that are used/.test(slip.message)], ["ActRefused", true])
      assert.strictEqual((yield* api.caps.raise({ payload: { ...low, belowUsed: true } })).text, "the cap is 1.10 usd now")
      const { events: lowered } = yield* api.caps.list()
      assert.deepStrictEqual([lowered[0]?.capBeforeMinor, lowered[0]?.capMinor], [2_400_060n, 110n])
      // An act that finds everything as it was to be says so, to whoever does it and on the trail.
      yield* api.caps.close({ payload: { ...scope, reason: "the month is over" } })
      assert.deepStrictEqual((({ act, actor, reason }) => [act, actor, reason])((yield* api.caps.list()).events[0]!), ["closed", "grace", "the month is over"])
      const again = [
        yield* api.caps.raise({ payload: { ...low, belowUsed: true } }),
        yield* api.caps.close({ payload: { ...scope, reason: "once more" } })
      ]
      assert.deepStrictEqual(again.map(({ text }) => text), ["the cap was 1.10 usd before (nothing changed)", "the cap was closed before (nothing changed)"])
      yield* api.caps.reopen({ payload: { ...scope, reason: "late rows" } })
      yield* api.caps.raise({ payload: { ...scope, expectedTotal: "20000.50", headroomPercent: 120, reason: "late rows" } })
      const { acts } = yield* api.session.acts({ query: { limit: 20 } })
      assert.deepStrictEqual(acts.filter(({ act }) => act.endsWith("cap: nothing changed")).map(({ act, reason }) => [act, reason]), [["close cap: nothing changed", "once more"], ["set cap: nothing changed", "the month is over"]])
      for (const expectedTotal of ["1.234", "-1", "1,000", ""]) {
        const refused = yield* Effect.result(api.caps.raise({ payload: { ...scope, expectedTotal, headroomPercent: 110, reason: "a typing error" } }))
        assert.strictEqual(refused._tag, "Failure", expectedTotal)
      }
      const huge = yield* Effect.flip(api.caps.raise({ payload: { ...scope, expectedTotal: "99999999999999999999", headroomPercent: 110, reason: "a typing error" } }))
      assert.match(huge.message, /the largest amount is/)
      assert.strictEqual((yield* Effect.flip(api.caps.vaults()))._tag, "NotThere")
    }))

  it.effect("pushes what moves: the first pulse tells how things stand, and a charge makes another", () =>
    Effect.gen(function*() {
      yield* openCap
      const api = yield* client
      const pulses = yield* api.session.live()
      const moved = yield* Effect.forkChild(pulses.pipe(
        Stream.map(({ moved }) => moved["succeeded"] ?? 0),
        Stream.scan(() => 0, (sum, n) => sum + n),
        Stream.takeUntil((sum) => sum >= 1),
        Stream.runLast
      ))
      const [first] = yield* Stream.runCollect(Stream.take(yield* api.session.live(), 1))
      assert.deepStrictEqual([first?.pauses, first?.counts.quarantined], [[], (yield* api.attention.list()).counts.quarantined])
      yield* charged("mover")
      const last = yield* Fiber.join(moved)
      assert.strictEqual(last._tag === "Some" ? last.value : 0, 1)
    }))

  it.effect("compares the ledger with the account, both ways, and changes nothing in a dry run", () =>
    Effect.gen(function*() {
      yield* openCap
      const api = yield* client
      const { chargeKey } = yield* charged("reconciled")
      yield* api.reconcile.start({ payload: { billingPeriod: "2026-07", sinceMs: Date.now() - 86_400_000, dryRun: true, reason: "the month's end" } })
      const { last } = yield* Effect.repeat(api.reconcile.get(), { until: ({ last }) => last?.state !== "running" })
      assert.deepStrictEqual([last?.state, last?.dryRun, last?.actor], ["done", true, "grace"])
      assert.isAbove(last?.report?.ours ?? 0, 0)
      assert.isTrue(last?.differences.every((difference) => difference.chargeKey !== chargeKey))
    }))

  it.effect("a period that is none is not compared, and one of which neither side knows is not said to agree", () =>
    Effect.gen(function*() {
      const api = yield* client
      const sinceMs = Date.now() - 86_400_000
      for (const billingPeriod of ["nonsense", "2026-13"]) {
        const refused = yield* Effect.flip(api.reconcile.start({ payload: { billingPeriod, sinceMs, dryRun: true, reason: "the month's end" } }))
        assert.deepStrictEqual([refused._tag, refused.message.startsWith("billing period")], ["ActRefused", true], billingPeriod)
      }
      yield* api.reconcile.start({ payload: { billingPeriod: "2025-Q3", sinceMs, dryRun: true, reason: "a slip of the hand" } })
      const { last } = yield* Effect.repeat(api.reconcile.get(), { until: ({ last }) => last?.state !== "running" })
      // In the spelling of rows and objects.
      assert.deepStrictEqual([last?.billingPeriod, last?.report?.rows, last?.report?.ours], ["Q3-2025", 0, 0])
      const drawn = renderToString(createElement(Last, { last: last! }))
      assert.include(drawn, "Nothing of this period is on either side.")
      assert.include(renderToString(createElement(Last, { last: { ...last!, report: { ...last!.report!, rows: 3, ours: 3 } } })), "Both sides say the same.")
    }))
})

