import { PushPull } from "@purser/transport-zeromq"
import { Console, Effect, Ref, Schema } from "effect"

// The reply is the acknowledgement: nothing more than "done".
const Mail = { request: Schema.Struct({ to: Schema.String }), reply: Schema.Void }
const endpoints = ["ipc:///tmp/purser-example-push-pull-1", "ipc:///tmp/purser-example-push-pull-2"]

const program = Effect.gen(function*() {
  const sent = yield* Ref.make(0)
  for (const endpoint of endpoints) {
    yield* Effect.forkChild(PushPull.serve({ ...Mail, endpoint }, () => Ref.update(sent, (n) => n + 1)))
  }
  const { requestAll } = yield* PushPull.client({ ...Mail, endpoint: endpoints })
  const acknowledged = yield* requestAll(Array.from({ length: 100 }, (_, n) => ({ to: `reader-${n}` })))
  yield* Console.log(acknowledged.length, "acknowledged,", yield* Ref.get(sent), "sent")
})

await Effect.runPromise(Effect.scoped(program))
