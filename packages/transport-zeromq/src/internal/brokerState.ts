/**
 * The broker's decisions, without sockets and without a clock of its own: an event and the time go in, actions come out.
 *
 * It decides which worker gets a request, when a worker is taken for lost, and what becomes of the requests that it had.
 * It never looks into a body. A request is with one worker at a time; it goes to another one only after the first was
 * dropped, and an answer of a worker that does not hold the request is never passed on.
 */
import { type BrokerQueue, type BrokerRequest, makeBrokerQueue } from "./brokerQueue.ts"

/** Limits and times of a broker. */
export interface BrokerLimits {
  readonly heartbeatMs: number
  /** Requests that wait, of all services together, and their bytes. */
  readonly queueMax: number
  readonly queueMaxBytes: number
  /** How long a request waits whose sender names no deadline. */
  readonly expiryMs: number
  /** How long one waits at the most, whatever its sender says. */
  readonly expiryMaxMs: number
  readonly workersMax: number
  /** Requests at a time that a worker may ask for at the most. */
  readonly creditMax: number
}

/** What happens to a broker. Workers are named by their routing id. */
export type BrokerEvent<Client, Body> =
  | { readonly _tag: "Requested"; readonly token: string; readonly client: Client; readonly service: string; readonly body: Body; readonly bytes: number; readonly deadlineMs: number | undefined }
  | { readonly _tag: "Ready"; readonly worker: string; readonly service: string; readonly credit: number | undefined }
  | { readonly _tag: "Answered"; readonly worker: string; readonly token: string; readonly final: boolean; readonly body: Body }
  | { readonly _tag: "Heartbeat"; readonly worker: string; readonly finals: number | undefined }
  | { readonly _tag: "Disconnected"; readonly worker: string }
  | { readonly _tag: "Unreachable"; readonly worker: string }
  | { readonly _tag: "Ticked" }
  | { readonly _tag: "Closing" }
  | { readonly _tag: "Closed" }

/** Why a worker is no longer there. */
export type DropReason = "silent" | "left" | "unreachable" | "messages-lost" | "ready-twice"

/** What a broker does. `Give`'s token is new for each delivery. */
export type BrokerAction<Client, Body> =
  | { readonly _tag: "Give"; readonly worker: string; readonly token: string; readonly body: Body }
  | { readonly _tag: "Beat"; readonly worker: string; readonly requests: number }
  | { readonly _tag: "Dismiss"; readonly worker: string }
  | { readonly _tag: "Answer"; readonly client: Client; readonly service: string; readonly body: Body; readonly final: boolean }
  | { readonly _tag: "Refuse"; readonly client: Client; readonly service: string; readonly body: Body; readonly because: "full" | "closing" }
  | { readonly _tag: "Dropped"; readonly worker: string; readonly because: DropReason; readonly requeued: number }
  | { readonly _tag: "Expired"; readonly token: string }
  | { readonly _tag: "Stale"; readonly worker: string; readonly token: string }

/** How much there is. */
export interface BrokerFigures {
  readonly waiting: number
  readonly given: number
  readonly workers: number
}

/** The machine. */
export interface BrokerState<Client, Body> {
  readonly handle: (event: BrokerEvent<Client, Body>, nowMs: number) => ReadonlyArray<BrokerAction<Client, Body>>
  readonly figures: () => BrokerFigures
}

interface Worker<Request> {
  readonly id: string
  readonly service: string
  /** What it holds, by the token under which it got it. */
  readonly held: Map<string, Request>
  credit: number
  heardAtMs: number
  beatAtMs: number
  givenCount: number
  finalCount: number
  /** Its place in the turn of workers with equal room. */
  turn: number
}

/**
 * What part of the queue may hold requests for services that nobody works for: names are the senders' to choose, and a made-up one must not
 * stop the others. A service whose workers are all gone is back with the first of them.
 */
const unservedPart = 1 / 4

/** A worker that was silent for more of its heartbeats is lost; ticks come four times in each. */
const silentBeats = 2.5

/** Makes a broker that knows nobody. */
export const makeBrokerState = <Client, Body>(limits: BrokerLimits, startMs: number): BrokerState<Client, Body> => {
  type Request = BrokerRequest<Client, Body>
  type Action = BrokerAction<Client, Body>
  const { heartbeatMs } = limits
  const workers = new Map<string, Worker<Request>>()
  const queues = new Map<string, BrokerQueue<Request>>()
  /** How many workers a service has; one that has none is not in it. */
  const served = new Map<string, number>()
  /** Of what waits, that for services without workers. */
  const unserved = { requests: 0, bytes: 0 }
  let waiting = 0
  let waitingBytes = 0
  let turns = 0
  let tickedAtMs = startMs
  let closing = false

  const queueOf = (service: string) => {
    let queue = queues.get(service)
    if (queue === undefined) queues.set(service, queue = makeBrokerQueue<Request>())
    return queue
  }
  const left = (request: Request, sign: 1 | -1) => {
    waiting += sign
    waitingBytes += sign * request.bytes
    if (!served.has(request.service)) setAside(request, sign)
  }
  const setAside = ({ bytes }: Request, sign: 1 | -1) => {
    unserved.requests += sign
    unserved.bytes += sign * bytes
  }
  const joins = (service: string) => {
    const workers = served.get(service) ?? 0
    if (workers === 0) queues.get(service)?.forEach((request) => setAside(request, -1))
    served.set(service, workers + 1)
  }
  const leaves = (service: string) => {
    const workers = served.get(service)! - 1
    if (workers > 0) return void served.set(service, workers)
    served.delete(service)
    queues.get(service)?.forEach((request) => setAside(request, 1))
  }
  const isFull = (service: string, bytes: number): boolean =>
    waiting >= limits.queueMax || waitingBytes + bytes > limits.queueMaxBytes
    || !served.has(service) && (unserved.requests >= limits.queueMax * unservedPart || unserved.bytes + bytes > limits.queueMaxBytes * unservedPart)

  /** The worker with the most room; of equals, the one whose turn is the longest ago. */
  const freest = (service: string): Worker<Request> | undefined => {
    let best: Worker<Request> | undefined
    let most = 0
    for (const worker of workers.values()) {
      if (worker.service !== service) continue
      const room = worker.credit - worker.held.size
      if (room > most || (room === most && best !== undefined && worker.turn < best.turn)) {
        best = worker
        most = room
      }
    }
    return best
  }

  const dispatch = (service: string, nowMs: number, actions: Array<Action>): void => {
    const queue = queues.get(service)
    if (queue === undefined) return
    while (queue.size() > 0) {
      const worker = freest(service)
      if (worker === undefined) return
      const request = queue.take()!
      left(request, -1)
      if (request.expiresAtMs <= nowMs) {
        actions.push({ _tag: "Expired", token: request.token })
        continue
      }
      const token = `${request.token}.${++request.deliveries}`
      worker.held.set(token, request)
      worker.givenCount++
      worker.turn = ++turns
      actions.push({ _tag: "Give", worker: worker.id, token, body: request.body })
    }
    queues.delete(service)
  }

  const drop = (worker: Worker<Request>, because: DropReason, nowMs: number, actions: Array<Action>): void => {
    workers.delete(worker.id)
    leaves(worker.service)
    const requests = [...worker.held.values()]
    for (const request of requests) left(request, 1)
    if (requests.length > 0) queueOf(worker.service).giveBack(requests)
    if (because !== "left" && because !== "unreachable") actions.push({ _tag: "Dismiss", worker: worker.id })
    actions.push({ _tag: "Dropped", worker: worker.id, because, requeued: requests.length })
    dispatch(worker.service, nowMs, actions)
  }

  const request = ({ _tag, deadlineMs, ...asked }: Extract<BrokerEvent<Client, Body>, { _tag: "Requested" }>, nowMs: number, actions: Array<Action>) => {
    const { body, client, service } = asked
    if (closing) return void actions.push({ _tag: "Refuse", client, service, body, because: "closing" })
    if (isFull(service, asked.bytes)) {
      return void actions.push({ _tag: "Refuse", client, service, body, because: "full" })
    }
    const added: Request = { ...asked, expiresAtMs: nowMs + Math.min(deadlineMs ?? limits.expiryMs, limits.expiryMaxMs), deliveries: 0 }
    queueOf(service).add(added)
    left(added, 1)
    dispatch(service, nowMs, actions)
  }

  const ready = (id: string, service: string, credit: number | undefined, nowMs: number, actions: Array<Action>) => {
    const known = workers.get(id)
    // Another credit is Purser's own way to pause; the plain protocol allows one READY for each connection.
    if (known !== undefined && (credit === undefined || known.service !== service)) return drop(known, "ready-twice", nowMs, actions)
    if (known === undefined && workers.size >= limits.workersMax) return void actions.push({ _tag: "Dismiss", worker: id })
    const room = Math.min(credit ?? 1, limits.creditMax)
    if (known === undefined) {
      joins(service)
      workers.set(id, { id, service, held: new Map(), credit: room, heardAtMs: nowMs, beatAtMs: nowMs, givenCount: 0, finalCount: 0, turn: 0 })
    } else {
      known.credit = room
      known.heardAtMs = nowMs
    }
    dispatch(service, nowMs, actions)
  }

  const answer = (worker: Worker<Request>, token: string, final: boolean, body: Body, nowMs: number, actions: Array<Action>) => {
    if (final) worker.finalCount++
    const held = worker.held.get(token)
    if (held === undefined) return void actions.push({ _tag: "Stale", worker: worker.id, token })
    actions.push({ _tag: "Answer", client: held.client, service: held.service, body, final })
    if (!final) return
    worker.held.delete(token)
    dispatch(worker.service, nowMs, actions)
  }

  const tick = (nowMs: number, actions: Array<Action>) => {
    // While the broker stood still it heard nobody: that time is held against no one.
    const stalledMs = nowMs - tickedAtMs
    tickedAtMs = nowMs
    if (stalledMs > heartbeatMs) for (const worker of workers.values()) worker.heardAtMs += stalledMs
    for (const worker of workers.values()) {
      if (nowMs - worker.heardAtMs > silentBeats * heartbeatMs) drop(worker, "silent", nowMs, actions)
    }
    for (const worker of workers.values()) {
      if (nowMs < worker.beatAtMs) continue
      worker.beatAtMs = nowMs + heartbeatMs
      actions.push({ _tag: "Beat", worker: worker.id, requests: worker.givenCount })
    }
    for (const [service, queue] of queues) {
      for (const expired of queue.remove(({ expiresAtMs }) => expiresAtMs <= nowMs)) {
        left(expired, -1)
        actions.push({ _tag: "Expired", token: expired.token })
      }
      if (queue.size() === 0) queues.delete(service)
    }
  }

  /** What nobody will do any more goes back to its sender, and workers look for the next broker. */
  const close = (actions: Array<Action>) => {
    for (const queue of queues.values()) {
      for (const request of queue.remove(() => true)) {
        left(request, -1)
        actions.push({ _tag: "Refuse", client: request.client, service: request.service, body: request.body, because: "closing" })
      }
    }
    queues.clear()
    for (const worker of workers.keys()) actions.push({ _tag: "Dismiss", worker })
    workers.clear()
    served.clear()
  }

  const fromWorker = (event: Extract<BrokerEvent<Client, Body>, { readonly worker: string }>, nowMs: number, actions: Array<Action>): void => {
    if (event._tag === "Ready") return ready(event.worker, event.service, event.credit, nowMs, actions)
    const worker = workers.get(event.worker)
    if (worker === undefined) {
      if (event._tag === "Answered") actions.push({ _tag: "Stale", worker: event.worker, token: event.token })
      // It believes that it is known: told otherwise, it makes itself known again.
      if (event._tag === "Answered" || event._tag === "Heartbeat") actions.push({ _tag: "Dismiss", worker: event.worker })
      return
    }
    worker.heardAtMs = nowMs
    switch (event._tag) {
      case "Answered":
        return answer(worker, event.token, event.final, event.body, nowMs, actions)
      case "Heartbeat":
        if (event.finals !== undefined && event.finals > worker.finalCount) drop(worker, "messages-lost", nowMs, actions)
        return
      case "Disconnected":
        return drop(worker, "left", nowMs, actions)
      case "Unreachable":
        return drop(worker, "unreachable", nowMs, actions)
    }
  }

  return {
    handle: (event, nowMs) => {
      const actions: Array<Action> = []
      if (event._tag === "Requested") request(event, nowMs, actions)
      else if (event._tag === "Ticked") tick(nowMs, actions)
      else if (event._tag === "Closing") closing = true
      else if (event._tag === "Closed") close(actions)
      else fromWorker(event, nowMs, actions)
      return actions
    },
    figures: () => {
      let given = 0
      for (const { held } of workers.values()) given += held.size
      return { waiting, given, workers: workers.size }
    }
  }
}
