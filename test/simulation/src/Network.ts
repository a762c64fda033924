/**
 * The network between clients and workers: real frames of the wire, which it loses, repeats, delays, reorders and brings
 * to the wrong client. A client has an id for each life, and a worker that is down takes nothing.
 */
import {
  type ChargeClient, type ChargeHandler, type ChargeOutcome, type ChargeReply, type ChargeServer, LedgerError, LedgerUnavailable, RequestTimeout,
  RetriesExhausted, type SubmitError, TransportError, Wire
} from "@purser/core"
import { Deferred, Effect, Queue, Result } from "effect"
import type { Kernel } from "./Kernel.ts"
import type { Mutant } from "./Mutant.ts"
import type { Process } from "./Process.ts"
import type { Rng } from "./Rng.ts"
import { forkIn, type Storm } from "./Storm.ts"

const timeoutMs = 25_000
const attemptsMax = 3
const endpoint = "simulated"
const wire = Wire.make({ labels: "calendar" })

interface Frame {
  readonly from: string
  readonly text: string
}

interface Waiting {
  readonly done: Deferred.Deferred<ChargeReply>
}

interface ClientLife {
  readonly id: string
  readonly index: number
  readonly waiting: Map<string, Waiting>
  asked: number
}

/** A worker's side of the network. */
export interface Desk {
  readonly process: Process
  readonly inbox: Queue.Queue<Frame>
}

/** All messages of one world. */
export class Network {
  /** What the network itself saw go wrong: an answer that was addressed to somebody who did not ask for it. */
  readonly violations: Array<string> = []
  /** Frames that were brought to a client that had not asked. */
  strays = 0
  private readonly desks: Array<Desk> = []
  private readonly lives: Array<ClientLife>
  /** Request id to the client that asked. */
  private readonly askers = new Map<string, string>()
  private lastAsker = ""
  private readonly kernel: Kernel
  private readonly storm: Storm
  private readonly rng: Rng
  private readonly mutant: Mutant | undefined

  constructor(kernel: Kernel, storm: Storm, rng: Rng, clients: number, mutant: Mutant | undefined) {
    this.kernel = kernel
    this.storm = storm
    this.rng = rng
    this.mutant = mutant
    this.lives = Array.from({ length: clients }, (_, index) => this.newLife(index, 0))
  }

  private newLife(index: number, life: number): ClientLife {
    return { id: `client-${index}.${life}`, index, waiting: new Map(), asked: 0 }
  }

  /** The peer dies and comes back under another id; what it waited for is as lost as its socket. */
  restart(index: number) {
    const old = this.lives[index]!
    this.lives[index] = this.newLife(index, Number(old.id.split(".")[1]) + 1)
    for (const { done } of old.waiting.values()) {
      Deferred.doneUnsafe(done, Effect.succeed(Result.fail(new TransportError({ reason: new RequestTimeout({ endpoint, attempt: 0, timeoutMs }), chargeKey: null }))))
    }
  }

  private carry(direction: "request" | "reply", client: number, deliver: (astray: boolean) => void) {
    const latency = () => this.rng.between(0, 30)
    const later = (ms: number, astray = false) =>
      forkIn(this.kernel, Effect.andThen(Effect.sleep(ms), Effect.sync(() => this.storm.isCutOff(client) ? undefined : deliver(astray))))
    if (this.storm.isCutOff(client)) return
    const fault = this.storm.atMessage(direction)
    switch (fault?.fate) {
      case undefined:
        return later(latency())
      case "lose":
        return
      case "repeat":
        later(latency())
        return later(fault.ms)
      case "delay":
        return later(fault.ms)
      case "astray":
        later(latency(), true)
        return later(latency())
    }
  }

  private toWorker(frame: Frame, client: number) {
    const up = this.desks.filter(({ process }) => !process.dead)
    if (up.length === 0) return
    const desk = this.rng.pick(up)
    this.carry("request", client, () => {
      if (!desk.process.dead) Queue.offerUnsafe(desk.inbox, frame)
    })
  }

  private toClient(to: string, text: string) {
    const index = this.lives.findIndex(({ id }) => id === to)
    if (index < 0) return
    this.carry("reply", index, (astray) => this.receive(astray ? (index + 1) % this.lives.length : index, astray ? undefined : to, text))
  }

  private receive(index: number, to: string | undefined, text: string) {
    const life = this.lives[index]!
    if (to !== undefined && to !== life.id) return
    const replies = wire.decodeReplies(text)
    if (Result.isFailure(replies)) return
    for (const { id, reply } of replies.success) {
      const known = life.waiting.get(id)
      const found = this.mutant?.takesAnyReply === true ? [...life.waiting.values()][0] : known
      if (found === undefined) this.strays += 1
      else Deferred.doneUnsafe(found.done, Effect.succeed(reply))
    }
  }

  /** A client's sending side: it asks again under the same id, a bounded number of times. */
  client(index: number): ChargeClient["Service"] {
    return {
      submit: Effect.fnUntraced({ self: this }, function*(request) {
        const life = this.lives[index]!
        const id = `${life.id}/${++life.asked}`
        this.askers.set(id, life.id)
        const done = Deferred.makeUnsafe<ChargeReply>()
        life.waiting.set(id, { done })
        const text = wire.encodeRequests(life.id, [{ id, deadlineMs: timeoutMs, request }])
        for (let attempt = 1; attempt <= attemptsMax; attempt++) {
          this.toWorker({ from: life.id, text }, index)
          const reply = yield* Effect.timeoutOption(Deferred.await(done), timeoutMs)
          if (reply._tag === "None") continue
          life.waiting.delete(id)
          const answer: Effect.Effect<ChargeOutcome, SubmitError> = Effect.fromResult(reply.value)
          return yield* answer
        }
        life.waiting.delete(id)
        return yield* new TransportError({ reason: new RetriesExhausted({ endpoint, attempts: attemptsMax }), chargeKey: request.chargeKey })
      })
    }
  }

  private send(asked: Frame, items: ReadonlyArray<{ readonly id: string; readonly reply: ChargeReply }>) {
    const to = this.mutant?.answersLastAsker === true ? this.lastAsker : asked.from
    for (const { id } of items) {
      if (this.askers.get(id) !== to) this.violations.push(`the answer to ${id} was sent to ${to}`)
    }
    this.toClient(to, wire.encodeReplies(items))
  }

  /** A worker's receiving side. */
  server(process: Process): ChargeServer["Service"] {
    return {
      serve: (handler) =>
        Effect.gen({ self: this }, function*() {
          const inbox = yield* Queue.unbounded<Frame>()
          this.desks.push({ process, inbox })
          return yield* Queue.take(inbox).pipe(
            Effect.tap((frame) => Effect.forkChild(this.handle(process, handler, frame))),
            Effect.forever
          )
        })
    }
  }

  private readonly handle = Effect.fnUntraced({ self: this }, function*(process: Process, handler: ChargeHandler, frame: Frame) {
    yield* process.pass
    this.lastAsker = frame.from
    const decoded = wire.decodeRequests(frame.text)
    if (Result.isFailure(decoded) || decoded.success.form === "plain") return
    const items = yield* Effect.forEach(decoded.success.items, ({ id, request }) =>
      Result.isFailure(request)
        ? Effect.succeed({ id, reply: Result.fail(request.failure) as ChargeReply })
        : Effect.map(answerOf(handler, request.success), (reply) => ({ id, reply })))
    yield* process.pass
    this.send(frame, items)
  })
}

const answerOf = (handler: ChargeHandler, request: Parameters<ChargeHandler>[0]): Effect.Effect<ChargeReply> =>
  handler(request).pipe(
    Effect.result,
    Effect.catchCause((): Effect.Effect<ChargeReply> =>
      Effect.succeed(Result.fail(
        new LedgerError({ reason: new LedgerUnavailable({ operation: "handle", detail: "the worker failed inside" }), chargeKey: request.chargeKey })
      )))
  )
