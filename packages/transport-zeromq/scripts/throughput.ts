/**
 * How many requests a second each pattern carries, beside raw zeromq.js with one JSON message per frame and the same
 * window, in one run on one machine: `node scripts/throughput.ts [requests]`. Read the ratios, not the numbers.
 */
import { ChargeClient, type ChargeRequest, ChargeServer, Succeeded, type TransportServices } from "@purser/core"
import { chargeFor } from "@purser/testkit/chargeFor"
import { ZmqTransport } from "@purser/transport-zeromq"
import { Clock, Console, Effect, Fiber, type Layer } from "effect"
import * as zmq from "zeromq"

const count = Number(process.argv[2] ?? 20_000)
const window = 1000
const rounds = 3

const paid = ({ amountMinor, chargeKey }: ChargeRequest) =>
  new Succeeded({ chargeKey, alreadySettled: false, paymentIntentId: "pi_1", chargeId: "ch_1", amountReceivedMinor: amountMinor })
const requests = Array.from({ length: count }, (_, index) => chargeFor(`cust_${index}`, "2026-07", { amountMinor: 1000 + index }))
const bodies = requests.map((request, index) => ({
  id: index, customer_id: request.customerId, billing_period: request.billingPeriod, amount_minor: request.amountMinor,
  currency: request.currency, stripe_customer_id: request.stripeCustomerId, namespace: request.namespace
}))
const reply = (id: number) => JSON.stringify({ id, status: "ok", charge_id: "ch_1", payment_intent_id: "pi_1", amount_received: 1000 })

const perSecond = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const began = yield* Clock.currentTimeMillis
    yield* work
    return Math.round(count * 1000 / Math.max(1, (yield* Clock.currentTimeMillis) - began))
  })

const ours = (layer: Layer.Layer<TransportServices, unknown>) =>
  Effect.gen(function*() {
    const { submit } = yield* ChargeClient
    const serving = yield* Effect.forkChild((yield* ChargeServer).serve((request) => Effect.succeed(paid(request))))
    yield* submit(requests[0]!)
    const rate = yield* perSecond(Effect.forEach(requests, submit, { concurrency: window, discard: true }))
    yield* Fiber.interrupt(serving)
    return rate
  }).pipe(Effect.provide(layer))

interface RawSides {
  readonly send: (text: string) => Promise<void>
  readonly receive: () => Promise<ReadonlyArray<Buffer>>
}

/** A window of messages, each parsed and stringified on both sides, as ours are. */
const rawRun = async ({ receive, send }: RawSides) => {
  let sent = 0
  let answered = 0
  let room: () => void = () => undefined
  const sending = (async () => {
    while (sent < count) {
      if (sent - answered >= window) await new Promise<void>((resolve) => room = resolve)
      await send(JSON.stringify(bodies[sent++]))
    }
  })()
  while (answered < count) {
    JSON.parse(String((await receive())[0]))
    answered++
    room()
  }
  await sending
}

const rawRouterDealer = Effect.promise(async () => {
  const router = new zmq.Router({ linger: 0 })
  await router.bind("tcp://127.0.0.1:*")
  const dealer = new zmq.Dealer({ linger: 0 })
  dealer.connect(router.lastEndpoint!)
  const served = (async () => {
    for await (const [peer, body] of router) await router.send([peer!, reply(JSON.parse(String(body)).id)])
  })()
  const rate = await Effect.runPromise(perSecond(Effect.promise(() => rawRun({ send: (text) => dealer.send(text), receive: () => dealer.receive() }))))
  dealer.close()
  router.close()
  await served
  return rate
})

const rawPushPull = Effect.promise(async () => {
  const [pull, ack] = [new zmq.Pull({ linger: 0 }), new zmq.Pull({ linger: 0 })]
  await pull.bind("tcp://127.0.0.1:*")
  await ack.bind("tcp://127.0.0.1:*")
  const [push, answers] = [new zmq.Push({ linger: 0 }), new zmq.Push({ linger: 0 })]
  push.connect(pull.lastEndpoint!)
  answers.connect(ack.lastEndpoint!)
  const served = (async () => {
    for await (const [body] of pull) await answers.send(reply(JSON.parse(String(body)).id))
  })()
  const rate = await Effect.runPromise(perSecond(Effect.promise(() => rawRun({ send: (text) => push.send(text), receive: () => ack.receive() }))))
  for (const socket of [push, answers, pull, ack]) socket.close()
  await served
  return rate
})

const pairs = {
  "router-dealer": { raw: rawRouterDealer, ours: ours(ZmqTransport.layerRouterDealerLoopback()) },
  "push-pull": { raw: rawPushPull, ours: ours(ZmqTransport.layerPushPullLoopback()) }
} as const

// Interleaved, so that a busy moment of the machine meets both.
for (const [name, { ours: measured, raw }] of Object.entries(pairs)) {
  let [rawSum, oursSum] = [0, 0]
  for (let round = 0; round < rounds; round++) {
    rawSum += await Effect.runPromise(raw)
    oursSum += await Effect.runPromise(measured)
  }
  await Effect.runPromise(Console.log(
    `${name}: raw ${Math.round(rawSum / rounds)}/s, ours ${Math.round(oursSum / rounds)}/s, ratio ${(oursSum / rawSum).toFixed(2)}`
  ))
}
