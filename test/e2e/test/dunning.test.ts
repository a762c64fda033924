/** Dunning with real processes: cases that outlive the runner which had them, and what a person does about them. */
import { assert, it } from "@effect/vitest"
import { StripeSim } from "@purser/stripe-sim"
import { Effect } from "effect"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { userInfo } from "node:os"
import { csv, type Desk, desk } from "../src/Desk.ts"
import { stores } from "../src/Store.ts"
import { elsewhere } from "../src/Watch.ts"

const row = (customer: string, method: string) => `${customer},2026-07,10.00,USD,cus_${customer},${method},base`
const settings = {
  PURSER_DUNNING: "on",
  PURSER_DUNNING_WAITS: "1 second",
  PURSER_DUNNING_WAITS_BY_CODE: "generic_decline=1 hour",
  PURSER_DUNNING_POLL: "100 millis",
  PURSER_DUNNING_GRACE: "1 hour",
  PURSER_HAND_BACK: "100 millis"
}
const defaultCard = (customer: string, card: string) => elsewhere("POST", `/v1/customers/cus_${customer}`, { "invoice_settings[default_payment_method]": card })

const cases = (at: Desk) =>
  Effect.map(at.purser(["dunning", "list", "--all", "--json"]), ({ code, stderr, stdout }) => {
    assert.strictEqual(code, 0, stderr)
    const all = JSON.parse(stdout) as ReadonlyArray<{ readonly customerId: string; readonly state: string; readonly charge: { readonly state: string; readonly attempt: number } }>
    return Object.fromEntries(all.map((one) => [one.customerId, one]))
  })
const paymentsOf = (at: Desk) =>
  Effect.map(at.paid, (paid) => Object.fromEntries(paid.map((entry) => [entry.customer, entry.payments])))
const confirmsOf = (at: Desk) => Effect.map(at.sim.requests, (all) => all.filter(({ path }) => path.endsWith("/confirm")).map(({ idempotencyKey }) => idempotencyKey))

it.live("a case outlives kill -9 of its runner in the middle of an attempt: one payment; a new card is tried at once, a canceled case never", () =>
  Effect.scoped(Effect.gen(function*() {
    const at = yield* desk(stores.find(([name]) => name === "postgres")![1])
    yield* defaultCard("soft", "pm_card_chargeDeclinedInsufficientFunds")
    const file = at.write("bills.csv", csv(row("soft", ""), row("hard", "pm_card_chargeDeclinedExpiredCard"), row("tired", "pm_card_chargeDeclined"), row("good", "pm_card_visa")))
    const run = yield* at.purser(["run", file, "--expected-total", "100.00", "--yes", "--json"], settings)
    assert.deepInclude(run.json, { succeeded: 1, declined: 3 })
    // The card has funds again; the first runner dies when it has been paid and before it could write that down.
    yield* defaultCard("soft", "pm_card_visa")
    const killed = yield* at.start(["runner", "--transport", "memory"], { ...settings, PURSER_FAULT: "after-confirm:1" })
    assert.strictEqual((yield* killed.ended).signal, "SIGKILL")
    assert.deepStrictEqual(yield* paymentsOf(at), { good: 1, soft: 1 })
    assert.deepInclude((yield* cases(at))["soft"], { state: "open" })

    const next = yield* at.start(["runner", "--transport", "memory"], settings)
    const until = (customer: string, state: string) => next.meanwhile(Effect.repeat(cases(at), { until: (all) => all[customer]?.state === state }))
    const paid = yield* until("soft", "paid")
    assert.deepInclude(paid["soft"]?.charge, { state: "succeeded", attempt: 2 })
    assert.deepInclude(paid["hard"], { state: "open" })

    const card = yield* at.purser(["dunning", "card", "cus_hard", "--payment-method", "pm_card_visa", "--reason", "new card", "--json"])
    assert.deepStrictEqual(card.json, { cases: 1 }, card.stderr)
    assert.deepInclude((yield* until("hard", "paid"))["hard"]?.charge, { state: "succeeded", attempt: 2 })

    const nobody = yield* at.purser(["dunning", "card", "cus_nobody", "--payment-method", "pm_card_visa", "--reason", "new card", "--json"])
    assert.deepStrictEqual([nobody.code, nobody.stdout, nobody.stderr.trim()], [1, "", "cus_nobody has no open case"])

    const cancel = yield* at.purser(["dunning", "cancel", "tired", "2026-07", "--item", "base", "--reason", "goodwill"])
    assert.strictEqual(cancel.code, 0, cancel.stderr)
    assert.match(cancel.stdout, /canceled.*goodwill/)
    const twice = yield* at.purser(["dunning", "cancel", "tired", "2026-07", "--item", "base", "--reason", "goodwill"])
    assert.deepStrictEqual([twice.code, twice.stderr.trim()], [1, "the charge has no open case"])
    assert.include((yield* at.purser(["dunning", "start", "good", "2026-07", "--item", "base", "--reason", "x"])).stderr, "the charge is succeeded")
    yield* next.kill("SIGTERM")
    assert.strictEqual((yield* next.ended).code, 0)
    assert.deepStrictEqual(yield* paymentsOf(at), { good: 1, soft: 1, hard: 1 })
    // One question to the bank for each attempt of each charge, and none more.
    const keys = yield* confirmsOf(at)
    assert.deepStrictEqual([keys.length, new Set(keys).size], [6, 6])
  })).pipe(Effect.provide(StripeSim.layer())), 120_000)

it.live("a charge that is given up is told to another system under one key, and its object canceled; a later retry pays with another one", () =>
  Effect.scoped(Effect.gen(function*() {
    const at = yield* desk(stores.find(([name]) => name === "postgres")![1])
    const told: Array<{ readonly key: unknown; readonly token: unknown; readonly body: Record<string, unknown> }> = []
    const server = yield* Effect.acquireRelease(
      Effect.promise(() => new Promise<Server>((resolve) => {
        const server = createServer((request, response) => {
          let text = ""
          request.on("data", (data) => text += String(data))
          request.on("end", () => {
            told.push({ key: request.headers["idempotency-key"], token: request.headers["authorization"], body: JSON.parse(text) as Record<string, unknown> })
            response.writeHead(204).end()
          })
        }).listen(0, "127.0.0.1", () => resolve(server))
      })),
      (server) => Effect.sync(() => void server.close())
    )
    const by = {
      ...settings, PURSER_DUNNING_GRACE: "1 millis", PURSER_DUNNING_FINAL_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/given-up`,
      PURSER_DUNNING_FINAL_TOKEN: "a-token-of-theirs"
    }
    yield* at.purser(["run", at.write("bills.csv", csv(row("lost", "pm_card_chargeDeclinedLostCard"))), "--expected-total", "100.00", "--yes", "--json"], by)
    const runner = yield* at.start(["runner", "--transport", "memory"], by)
    const ended = yield* runner.meanwhile(Effect.repeat(cases(at), { until: (all) => all["lost"]?.state === "given_up" }))
    assert.deepInclude(ended["lost"]?.charge, { state: "declined", attempt: 1 })
    assert.deepStrictEqual(told.map(({ key, token }) => [key, token]), [[told[0]?.body["caseId"], "Bearer a-token-of-theirs"]])
    assert.deepInclude(told[0]?.body, { type: "dunning.given_up", customerId: "lost", billingPeriod: "2026-07", item: "base", amountMinor: 1000, currency: "usd", attempts: 1, declineCode: "lost_card" })
    assert.isTrue((yield* at.sim.requests).some(({ path }) => path.endsWith("/cancel")))
    const retried = yield* at.purser(["retry", "lost", "2026-07", "--item", "base", "--payment-method", "pm_card_visa", "--reason", "they came back"])
    assert.strictEqual(retried.code, 0, retried.stderr)
    assert.deepStrictEqual(yield* paymentsOf(at), { lost: 1 })
  })).pipe(Effect.provide(StripeSim.layer())), 120_000)

it.live("an attempt that finds the cap full leaves the decline as it is, and says what it waits for", () =>
  Effect.scoped(Effect.gen(function*() {
    const at = yield* desk(stores.find(([name]) => name === "postgres")![1])
    yield* at.purser(["run", at.write("soft.csv", csv(row("soft", "pm_card_chargeDeclinedInsufficientFunds"))), "--expected-total", "10.00", "--yes", "--json"], settings)
    const good = yield* at.purser(["run", at.write("good.csv", csv(row("good", "pm_card_visa"))), "--yes", "--json"], settings)
    assert.deepInclude(good.json, { succeeded: 1 }, good.stderr)
    const runner = yield* at.start(["runner", "--transport", "memory"], settings)
    const shown = yield* runner.meanwhile(Effect.repeat(at.purser(["dunning", "show", "soft", "2026-07", "--item", "base"]), { until: ({ stdout }) => /waits:/.test(stdout) }))
    assert.match(shown.stdout, /open .*asks as attempt 2; waits: .*cap/)
    assert.deepInclude((yield* cases(at))["soft"]?.charge, { state: "declined", attempt: 1 })
    assert.deepStrictEqual([(yield* confirmsOf(at)).length, yield* paymentsOf(at)], [2, { good: 1 }])
  })).pipe(Effect.provide(StripeSim.layer())), 120_000)

it.live("a case is opened by hand where none is opened by itself", () =>
  Effect.scoped(Effect.gen(function*() {
    const at = yield* desk(stores.find(([name]) => name === "postgres")![1])
    const by = { ...settings, PURSER_DUNNING: "off" }
    yield* defaultCard("soft", "pm_card_chargeDeclinedInsufficientFunds")
    const file = at.write("bills.csv", csv(row("soft", "")))
    yield* at.purser(["run", file, "--expected-total", "100.00", "--yes", "--json"], by)
    const started = yield* at.purser(["dunning", "start", "soft", "2026-07", "--item", "base", "--reason", "by phone", "--json"])
    assert.deepInclude((JSON.parse(started.stdout) as ReadonlyArray<unknown>)[0], { state: "open", openedBy: userInfo().username, reason: "by phone", openedAttempt: 1 })
    yield* defaultCard("soft", "pm_card_visa")
    const runner = yield* at.start(["runner", "--transport", "memory"], by)
    const paid = yield* runner.meanwhile(Effect.repeat(cases(at), { until: (all) => all["soft"]?.state === "paid" }))
    assert.deepInclude(paid["soft"]?.charge, { state: "succeeded", attempt: 2 })
    assert.deepStrictEqual(yield* paymentsOf(at), { soft: 1 })
  })).pipe(Effect.provide(StripeSim.layer())), 120_000)
