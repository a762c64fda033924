// #region
import { ChargeClient, SpendCap } from "@purser/core"
import { chargeFor, MockGateway, TestPipeline } from "@purser/testkit"
import { Console, Effect } from "effect"

const program = Effect.gen(function*() {
  const [client, cap] = [yield* ChargeClient, yield* SpendCap]
  const bill = chargeFor("cust_123", "2026-Q3")

  // Nobody has said what the quarter may cost.
  const refused = yield* client.submit(bill)
  yield* Console.log(refused._tag, "code" in refused ? refused.code : "")

  // The processor does the work, and its answer is lost; then it cannot even be asked.
  const other = chargeFor("cust_124", "2026-Q3")
  yield* cap.open({ ...other, expectedMinor: 100_000n, headroomPercent: 110 })
  yield* MockGateway.fail({ step: "confirm", when: "after" })
  yield* MockGateway.fail({ step: "retrieve", when: "before" }, 2)
  yield* Console.log((yield* client.submit(other))._tag)
  yield* Console.log("payments:", yield* MockGateway.payments("cust_124", "Q3-2026"))
})

await Effect.runPromise(Effect.provide(program, TestPipeline.layerStrictCap))
// #endregion
