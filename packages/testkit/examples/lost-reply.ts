import { ChargeClient } from "@purser/core"
import { chargeFor, FaultPlan, MockGateway, TestPipeline } from "@purser/testkit"
import { Console, Effect } from "effect"

// In a test this is `it.effect(name, () => program.pipe(Effect.provide(TestPipeline.layer)))`.
const program = Effect.gen(function*() {
  const client = yield* ChargeClient
  yield* FaultPlan.loseReply(1)
  yield* MockGateway.fail({ step: "confirm", when: "after" })

  // The money moves, its answer is lost, and so is the reply to the client, who asks again.
  const outcome = yield* client.submit(chargeFor("cust_123", "2025-Q3"))

  yield* Console.log(outcome._tag, "already settled:", outcome.alreadySettled)
  yield* Console.log("payments:", yield* MockGateway.payments("cust_123", "Q3-2025"))
})

await Effect.runPromise(program.pipe(Effect.provide(TestPipeline.layer)))
