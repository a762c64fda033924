/** zeromq.js by itself: one JSON message in a frame, a window of them, parsed and written on both sides. */
import * as zmq from "zeromq"
import { chargeTextOf, orderOf, paidTextOf, type Pattern, type Program, replyTo, window } from "./messages.ts"

// At its high-water mark a socket that sends and receives can miss the sign that it may go on, and stands still.
const unlimited = { sendHighWaterMark: 0, receiveHighWaterMark: 0 } as const

/** What is moved. */
const bodies = (program: Program) => program === "raw with charges" ? { ask: chargeTextOf, reply: paidTextOf } : { ask: orderOf, reply: replyTo }

/** Serves for ever. */
export const serveRaw = async (pattern: Pattern, program: Program, endpoint: string, back: string): Promise<void> => {
  const { reply: replyOf } = bodies(program)
  const answer = (body: Buffer | undefined) => {
    const { id, ...order } = JSON.parse(String(body))
    return JSON.stringify({ id, ...replyOf(order) })
  }
  if (pattern === "req-rep") {
    const reply = new zmq.Reply()
    await reply.bind(endpoint)
    for await (const [body] of reply) await reply.send(answer(body))
  }
  if (pattern === "router-dealer" || pattern === "majordomo") {
    const router = new zmq.Router(unlimited)
    await router.bind(endpoint)
    for await (const [peer, body] of router) await router.send([peer!, answer(body)])
  }
  const push = new zmq.Push({ sendHighWaterMark: 0 })
  push.connect(back)
  if (pattern === "pub-sub") {
    const subscriber = new zmq.Subscriber({ receiveHighWaterMark: 0 })
    await subscriber.bind(endpoint)
    subscriber.subscribe()
    for await (const [body] of subscriber) await push.send(answer(body))
  }
  const pull = new zmq.Pull({ receiveHighWaterMark: 0 })
  await pull.bind(endpoint)
  for await (const [body] of pull) await push.send(answer(body))
}

interface Sides {
  readonly send: (text: string) => Promise<void>
  readonly receive: () => Promise<ReadonlyArray<Buffer>>
}

const windowed = (ask: (index: number) => object, { receive, send }: Sides) => async (count: number) => {
  const open = new Map<number, true>()
  let sent = 0
  let room: () => void = () => undefined
  const sending = (async () => {
    while (sent < count) {
      if (open.size >= window) await new Promise<void>((resolve) => room = resolve)
      open.set(sent, true)
      await send(JSON.stringify({ id: sent, ...ask(sent) }))
      sent++
    }
  })()
  for (let answered = 0; answered < count;) {
    if (open.delete(JSON.parse(String((await receive())[0])).id)) answered++
    room()
  }
  await sending
}

/** Sends a number of messages and waits for the answers. */
export const connectRaw = async (pattern: Pattern, program: Program, endpoint: string, back: string): Promise<(count: number) => Promise<void>> => {
  const { ask } = bodies(program)
  if (pattern === "req-rep") {
    const request = new zmq.Request()
    request.connect(endpoint)
    return async (count) => {
      for (let index = 0; index < count; index++) {
        await request.send(JSON.stringify({ id: index, ...ask(index) }))
        JSON.parse(String((await request.receive())[0]))
      }
    }
  }
  if (pattern === "router-dealer" || pattern === "majordomo") {
    const dealer = new zmq.Dealer(unlimited)
    dealer.connect(endpoint)
    return windowed(ask, { send: (text) => dealer.send(text), receive: () => dealer.receive() })
  }
  const pull = new zmq.Pull({ receiveHighWaterMark: 0 })
  await pull.bind(back)
  if (pattern === "pub-sub") {
    const publisher = new zmq.Publisher({ sendHighWaterMark: 0 })
    publisher.connect(endpoint)
    // Who subscribes late has missed what was sent before: asked until somebody answers. Late answers to it count for nothing.
    const asking = setInterval(() => void publisher.send(JSON.stringify({ ...ask(0), id: -1 })), 20)
    await pull.receive()
    clearInterval(asking)
    return windowed(ask, { send: (text) => publisher.send(text), receive: () => pull.receive() })
  }
  const push = new zmq.Push({ sendHighWaterMark: 0 })
  push.connect(endpoint)
  return windowed(ask, { send: (text) => push.send(text), receive: () => pull.receive() })
}
