import { assert, it } from "@effect/vitest"
import { ChargeClient } from "@purser/core"
import { chargeFor, FaultPlan, MockGateway, TestPipeline } from "@purser/testkit"
import { Effect } from "effect"

it.effect("charges once when the reply is lost", () =>
  Effect.gen(function*() {
    const client = yield* ChargeClient
    yield* FaultPlan.loseReply(1)
    const outcome = yield* client.submit(chargeFor("cust_123", "2026-Q3"))
    assert.strictEqual(outcome._tag, "Succeeded")
    assert.strictEqual(yield* MockGateway.payments("cust_123", "Q3-2026"), 1)
  }).pipe(Effect.provide(TestPipeline.layer)))
