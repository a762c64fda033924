// The same project without PGlite and zeromq: every package can be imported, and what needs them says what is missing.
import { ChargeClient } from "@purser/core"
import { Database } from "@purser/postgres"
import { Purser, transports } from "@purser/purser"
import "@purser/spend-cap-proxy"
import { TestPipeline } from "@purser/testkit"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Effect, Layer } from "effect"

const failureOf = (layer) => Effect.runPromise(Effect.scoped(Effect.flip(Layer.build(layer)))).then(({ _tag, message }) => `${_tag}: ${message}`)

console.log(JSON.stringify({
  there: [ChargeClient, Purser, transports.memory, TestPipeline].every((one) => one !== undefined),
  embedded: await failureOf(Database.layerMemory),
  sockets: await failureOf(ZmqTransport.layerReqRepClient({ endpoint: "tcp://127.0.0.1:1" }))
}))
