/**
 * The sockets of a publishing client: an XPUB that requests leave by, and a PULL that answers come back to.
 *
 * PUB/SUB loses what is published before a subscription has arrived. An XPUB hears of each subscription, so that a worker
 * that joins gets at once what has no answer yet, instead of at the next deadline.
 *
 * Answers are read here, once, and go on to the window as plain callbacks.
 */
import type { ChargeRequest, ReplyItem, WireCodec } from "@purser/core"
import { Clock, Effect, Latch, Queue, Result } from "effect"
import { randomUUID } from "node:crypto"
import type { Endpoint } from "../Endpoint.ts"
import type { SocketSettings } from "../SocketSettings.ts"
import { type Frames, openZmqSocket } from "../ZmqSocket.ts"
import type { OpenCarrier, SentRequest } from "./carrier.ts"
import { answersCharge } from "./chargeClient.ts"
import { makeHeldAnswers } from "./heldAnswers.ts"
import type { Zeromq } from "./native.ts"

/** What it needs. */
export interface PubSubCarrierOptions {
  readonly zmq: Zeromq
  readonly settings: SocketSettings
  readonly wire: WireCodec
  /** The address of one life's PULL socket. */
  readonly back: () => Endpoint
  readonly timeoutMs: number
  readonly joinMax: number
  readonly window: number
  /** Workers that there are at least, for clients that cannot see them because a forwarder stands between. */
  readonly workersMin: number
}

/** Workers that are remembered by what they said. */
const spokeMax = 1000

/** Opens one life. */
export const openPubSubCarrier = (options: PubSubCarrierOptions): OpenCarrier<ChargeRequest, ReplyItem> => Effect.fnUntraced(function*(peers, listener) {
  const { joinMax, settings, timeoutMs, wire, zmq } = options
  const client = randomUUID()
  const clock = yield* Clock.Clock
  const busy = yield* Latch.make(false)

  // Workers that bind: one for each connection that is up, where that can be seen. Workers that connect: one for each
  // subscription. Of both at once nobody can tell which subscription is whose.
  const up = new Set<string>()
  let subscriptions = 0
  let connects = peers.filter(({ attach }) => attach === "connect")
  const inProcess = () => connects.filter(({ address }) => address.startsWith("inproc://")).length
  let withoutEvents = inProcess()
  const binds = peers.some(({ attach }) => attach === "bind")
  const connected = () =>
    binds && connects.length > 0
      ? Number.POSITIVE_INFINITY
      : binds
      ? subscriptions
      : withoutEvents + up.size
  // One connection may lead to several workers, by way of a forwarder: those that spoke lately count too.
  const spoke = new Map<string, number>()
  const reached = () => Math.max(options.workersMin, spoke.size, connected())
  const forget = (nowMs: number) => {
    for (const [worker, atMs] of spoke) if (nowMs - atMs > 3 * timeoutMs) spoke.delete(worker)
  }
  const held = makeHeldAnswers<SentRequest<ChargeRequest>>({
    reached,
    all: () => Math.max(reached(), connects.length),
    fits: ({ request }, reply) => answersCharge(request, reply),
    window: options.window
  })

  /** What is held back is nothing that the window has heard. */
  const pass = (answers: ReadonlyArray<ReplyItem>): void => {
    if (answers.length > 0) listener.answers(answers)
  }
  const answer = (frames: Frames, nowMs: number): void => {
    const [worker, text] = frames.length === 2 ? [frames[0]!.toString("latin1"), frames[1]!] : ["", frames[0]!]
    if (spoke.size < spokeMax) spoke.set(worker, nowMs)
    const replies = wire.decodeReplies(text.toString("utf8"))
    // The window counts what cannot be read.
    if (Result.isFailure(replies)) return listener.frames([text])
    const passed: Array<ReplyItem> = []
    for (const item of replies.success) {
      const one = held.take(worker, item)
      if (one !== undefined) passed.push(one)
    }
    pass(passed)
  }
  const pull = yield* openZmqSocket(zmq, {
    kind: "pull",
    endpoints: [options.back()],
    settings,
    sendTimeoutMs: 0,
    lingerMs: 0,
    hear: (batch, more) => {
      const nowMs = clock.currentTimeMillisUnsafe()
      for (const frames of batch) answer(frames, nowMs)
      more()
    }
  })
  const xpub = yield* openZmqSocket(zmq, {
    kind: "xpublisher",
    seals: true,
    endpoints: peers,
    settings,
    sendTimeoutMs: timeoutMs,
    // What is unsent when a life ends has been given up, or is sent again by the next one.
    lingerMs: 0,
    onEvent: (event) => {
      if (event.type === "handshake") up.add(event.address)
      else if (event.type === "disconnect" && "address" in event) up.delete(event.address)
    }
  })
  const returnAddress = pull.bound[0]!
  const publish = (text: string) => xpub.send([returnAddress, text])

  const republish = Effect.gen(function*() {
    const nowMs = yield* Clock.currentTimeMillis
    const open = held.open()
    for (let from = 0; from < open.length; from += joinMax) {
      const items = open.slice(from, from + joinMax)
        .map(({ body: { id, request, traceparent }, deadlineMs, sentAtMs }) => ({ id, request, traceparent, deadlineMs: Math.max(1, deadlineMs - (nowMs - sentAtMs)) }))
      yield* Effect.ignore(publish(wire.encodeRequests(client, items)))
    }
  })
  yield* Queue.takeAll(xpub.incoming).pipe(
    Effect.flatMap((batch) => {
      const joined = batch.filter(([frame]) => frame?.[0] === 1).length
      subscriptions = Math.max(0, subscriptions + 2 * joined - batch.length)
      return joined > 0 ? republish : Effect.void
    }),
    Effect.forever,
    Effect.ignore,
    Effect.forkScoped
  )

  yield* Effect.sleep(Math.min(100, Math.max(1, timeoutMs / 20))).pipe(
    Effect.andThen(Clock.currentTimeMillis),
    Effect.tap((nowMs) => Effect.sync(() => forget(nowMs))),
    Effect.map((nowMs) => pass(held.due(nowMs))),
    Effect.andThen(Effect.sync(() => {
      if (held.size() === 0) busy.closeUnsafe()
    })),
    (turn) => Effect.andThen(busy.await, turn),
    Effect.forever,
    Effect.forkScoped
  )

  return {
    client,
    admission: xpub.admission,
    reach: (endpoints) => {
      connects = endpoints.filter(({ attach }) => attach === "connect")
      withoutEvents = inProcess()
      return xpub.reach(endpoints)
    },
    send: (text, requests) =>
      Effect.suspend(() => {
        const sentAtMs = clock.currentTimeMillisUnsafe()
        for (const body of requests) held.publish(body.id, body, sentAtMs, body.deadlineMs)
        busy.openUnsafe()
        return publish(text)
      })
  }
})
