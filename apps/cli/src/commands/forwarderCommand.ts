/** The flags of `purser forwarder`. */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { inTelemetry } from "./inTelemetry.ts"

/** `purser forwarder` */
export const forwarderCommand = Command.make("forwarder", {
  device: Flag.Literals("device", ["queue", "streamer", "forwarder"]).pipe(
    Flag.withDescription("queue for req-rep and router-dealer, streamer for push-pull, forwarder for pub-sub and the event feed (default: PURSER_FORWARDER_DEVICE, else queue)"),
    Flag.optional
  ),
  frontend: Flag.String("frontend").pipe(
    Flag.withDescription("Where clients, producers or publishers connect (default: PURSER_FORWARDER_FRONTEND, else tcp://127.0.0.1:5555)"),
    Flag.optional
  ),
  backend: Flag.String("backend").pipe(
    Flag.withDescription("Where workers or subscribers connect (default: PURSER_FORWARDER_BACKEND, else tcp://127.0.0.1:5556)"),
    Flag.optional
  )
}, Effect.fnUntraced(function*(given) {
  const { forwarder } = yield* Effect.promise(() => import("../handlers/forwarder.ts"))
  return yield* inTelemetry("forwarder", forwarder({
    device: Option.getOrUndefined(given.device),
    frontend: Option.getOrUndefined(given.frontend),
    backend: Option.getOrUndefined(given.backend)
  }))
})).pipe(
  Command.withDescription("Pass messages on between two addresses, so that neither side knows the other, until stopped"),
  Command.withExamples([
    { command: "purser forwarder --device streamer --frontend tcp://127.0.0.1:5555 --backend tcp://127.0.0.1:5556", description: "Producers connect to 5555; workers serve on '>tcp://127.0.0.1:5556'" }
  ])
)
