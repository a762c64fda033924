// A stranger's program: every package by its name, a charge through each of the two ways to embed them, and the books.
import { ChargeClient, chargeKeyOf } from "@purser/core"
import { ChargePipeline } from "@purser/engine"
import { Database } from "@purser/postgres"
import { Purser } from "@purser/purser"
import { routeOf } from "@purser/spend-cap-proxy/RoutePolicy"
import { StripeGateway } from "@purser/stripe"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor, MockGateway, TestPipeline } from "@purser/testkit"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Effect } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const sealed = await import("@purser/core/internal/idProblem").then(() => "open", (error) => error.code)

const inMemory = Effect.gen(function*() {
  const client = yield* ChargeClient
  const outcome = yield* client.submit(chargeFor("cust_1", "2026-Q3"))
  return { outcome: outcome._tag, payments: yield* MockGateway.payments("cust_1", "Q3-2026") }
}).pipe(Effect.provide(TestPipeline.layer))

const embedded = Effect.scoped(Effect.gen(function*() {
  const sim = yield* StripeSim
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "purser-consumer-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const outcomes = yield* Effect.promise(async () => {
    const purser = await Purser.make({
      PURSER_DATA_DIR: folder, PURSER_DATABASE_URL: "", PURSER_STRIPE_URL: sim.url, PURSER_STRIPE_KEY: "sk_test_consumer"
    })
    await purser.openCap({ billingPeriod: "2026-07", currency: "usd", expectedMinor: 1999 })
    const charge = { customerId: "cust_2", billingPeriod: "2026-07", amountMinor: 1999, currency: "usd", stripeCustomerId: "cus_2" }
    const outcomes = [await purser.charge(charge), await purser.charge(charge)]
    await purser.close()
    return outcomes.map(({ _tag, alreadySettled }) => `${_tag}${alreadySettled ? " before" : ""}`)
  })
  return { outcomes, payments: yield* sim.payments("cust_2", "2026-07") }
})).pipe(Effect.provide(StripeSim.layer()))

console.log(JSON.stringify({
  node: process.versions.node.split(".")[0],
  sealed,
  key: chargeKeyOf({ namespace: "zmq-billing", customerId: "cust_123", billingPeriod: "Q3-2026" }),
  there: [ChargePipeline, Database, routeOf, StripeGateway, ZmqTransport].every((one) => one !== undefined),
  inMemory: await Effect.runPromise(inMemory),
  embedded: await Effect.runPromise(embedded)
}))
