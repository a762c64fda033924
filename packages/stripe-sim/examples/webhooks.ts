// A refund that its webhook tells twice, after the payment's own event has come late; no port, no waiting, one seed.
import { StripeSim } from "@purser/stripe-sim"
import { Console, Effect } from "effect"

const program = Effect.gen(function*() {
  const seen = new Set<string>()
  const sim = yield* StripeSim.makeInProcess({
    webhooks: [{ url: "https://billing.example/webhooks", secret: "whsec_example", events: ["charge.*"] }],
    receiveWebhook: ({ body }) =>
      Effect.gen(function*() {
        const event: { readonly id: string; readonly type: string } = JSON.parse(body)
        yield* Console.log(`${event.type}${seen.has(event.id) ? " (again)" : ""}`)
        seen.add(event.id)
        return 200
      })
  })
  const post = (path: string, body: string) =>
    sim.send({ method: "POST", path, headers: { authorization: "Bearer sk_test_sim" }, body })
  yield* sim.webhooks.addFaults(
    { match: { type: "charge.succeeded" }, action: { kind: "reorder", behind: 1 } },
    { match: { type: "charge.refunded" }, action: { kind: "repeat", times: 1 } }
  )

  const paid = yield* post("/v1/charges", "amount=3000&currency=usd&customer=cus_123&metadata[customer_id]=acme")
  const { id }: { readonly id: string } = JSON.parse(paid.body)
  yield* post("/v1/refunds", `charge=${id}&amount=1000`)
  yield* sim.webhooks.settled
  yield* Console.log(yield* sim.books)
})

program.pipe(Effect.scoped, Effect.runPromise)
