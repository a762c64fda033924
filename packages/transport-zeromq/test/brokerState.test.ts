import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { type BrokerAction, type BrokerEvent, type BrokerLimits, makeBrokerState } from "../src/internal/brokerState.ts"

const limits: BrokerLimits = { heartbeatMs: 1000, queueMax: 20, queueMaxBytes: 1000, expiryMs: 10_000, expiryMaxMs: 30_000, workersMax: 10, creditMax: 8 }
const [service, other] = ["charge", "refund"] as const

type Event = BrokerEvent<string, string>
type Action = BrokerAction<string, string>

const below = (maximum: number) => Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum: 0, maximum: maximum - 1 })))
const worker = below(3)
const request = Schema.Struct({ do: Schema.Literal("request"), client: below(3), of: Schema.Literals([service, service, service, other]), deadlineMs: Schema.Literals([500, 60_000]) })
const ready = Schema.Struct({ do: Schema.Literal("ready"), worker, of: Schema.Literals([service, service, service, other]), credit: Schema.Literals([3, 2, 1, 0]) })
const answer = Schema.Struct({ do: Schema.Literal("answer"), worker, which: below(4), final: Schema.Boolean })
const Step = Schema.Union([
  request, request, request, ready, ready, answer, answer,
  Schema.Struct({ do: Schema.Literal("answer another's"), worker, which: below(8) }),
  Schema.Struct({ do: Schema.Literal("lie about finals"), worker }),
  Schema.Struct({ do: Schema.Literal("leave"), worker }),
  Schema.Struct({ do: Schema.Literal("vanish"), worker }),
  Schema.Struct({ do: Schema.Literal("pass"), quarters: below(14), frozen: below(8) }),
  Schema.Struct({ do: Schema.Literal("stall"), ms: below(9000) })
])
const Steps = Schema.Array(Step).pipe(Schema.check(Schema.isMinLength(30), Schema.isMaxLength(80)))

interface Known {
  readonly client: string
  readonly service: string
  readonly expiresAtMs: number
  state: "waiting" | "answered" | "expired"
  holder: { readonly worker: string; readonly token: string } | undefined
}

const baseOf = (token: string) => token.slice(0, token.lastIndexOf("."))

/** The outer world, which believes nothing that the broker says: it keeps its own account and holds every action against it. */
const makeAuditor = () => {
  const state = makeBrokerState<string, string>(limits, 0)
  const requests = new Map<string, Known>()
  /** Workers as the broker should know them. */
  const present = new Map<string, { readonly service: string; credit: number; finals: number }>()
  /** Every token that each worker was ever given, also by an earlier session. */
  const given = new Map<string, Array<string>>()
  const seen = { lost: 0, answers: 0, stale: 0 }
  let nowMs = 0

  const heldBy = (id: string) => [...requests.values()].filter(({ holder }) => holder?.worker === id)
  const check = (event: Event, action: Action) => {
    switch (action._tag) {
      case "Give": {
        const request = requests.get(baseOf(action.token))!
        assert.isUndefined(request.holder, "a request is with one worker at a time")
        assert.strictEqual(request.state, "waiting", "nothing is given that is over")
        assert.isBelow(nowMs, request.expiresAtMs, "nothing is given whose sender has given up")
        const to = present.get(action.worker)!
        assert.strictEqual(to.service, request.service)
        request.holder = { worker: action.worker, token: action.token }
        assert.isAtMost(heldBy(action.worker).length, to.credit, "no worker gets more than it asked for")
        assert.isFalse(given.get(action.worker)?.includes(action.token) ?? false, "a delivery has a name of its own")
        given.set(action.worker, [...given.get(action.worker) ?? [], action.token])
        return
      }
      case "Answer": {
        assert.strictEqual(event._tag, "Answered")
        if (event._tag !== "Answered") return
        const request = requests.get(baseOf(event.token))!
        assert.deepStrictEqual(request.holder, { worker: event.worker, token: event.token }, "only the holder's answer is passed on")
        assert.strictEqual(action.client, request.client, "an answer goes to who asked")
        assert.strictEqual(action.body, event.body)
        seen.answers++
        if (!action.final) return
        request.state = "answered"
        request.holder = undefined
        return
      }
      case "Dropped":
        assert.strictEqual(heldBy(action.worker).length, action.requeued)
        seen.lost += action.requeued
        for (const request of heldBy(action.worker)) request.holder = undefined
        present.delete(action.worker)
        return
      case "Expired": {
        const request = requests.get(action.token)!
        assert.isUndefined(request.holder)
        assert.isAtLeast(nowMs, request.expiresAtMs)
        request.state = "expired"
        return
      }
      case "Refuse":
        assert.strictEqual(action.because, "full")
        if (event._tag !== "Requested") return
        requests.delete(event.token)
        if (state.figures().waiting < limits.queueMax) {
          const served = new Set([...present.values()].map(({ service }) => service))
          assert.isFalse(served.has(event.service), "who has a worker is refused only by a full queue")
          const aside = [...requests.values()].filter(({ holder, service, state }) => state === "waiting" && holder === undefined && !served.has(service))
          assert.isAtLeast(aside.length, limits.queueMax / 4)
        }
        return
      case "Stale":
        seen.stale++
        return
      case "Beat":
      case "Dismiss":
        return
    }
  }

  const happen = (event: Event) => {
    if (event._tag === "Requested") {
      requests.set(event.token, { client: event.client, service: event.service, expiresAtMs: nowMs + Math.min(event.deadlineMs!, limits.expiryMaxMs), state: "waiting", holder: undefined })
    }
    if (event._tag === "Ready" && (present.get(event.worker)?.service ?? event.service) === event.service) {
      present.set(event.worker, { service: event.service, credit: event.credit!, finals: present.get(event.worker)?.finals ?? 0 })
    }
    if (event._tag === "Answered" && event.final && present.has(event.worker)) present.get(event.worker)!.finals++
    for (const action of state.handle(event, nowMs)) check(event, action)
    const open = [...requests.values()].filter(({ state }) => state === "waiting")
    assert.deepStrictEqual(state.figures(), {
      waiting: open.filter(({ holder }) => holder === undefined).length,
      given: open.filter(({ holder }) => holder !== undefined).length,
      workers: present.size
    }, "every request that was taken is somewhere, and once")
    for (const [id, { credit, service }] of present) {
      if (credit <= heldBy(id).length) continue
      assert.isEmpty(open.filter((request) => request.service === service && request.holder === undefined), "nothing waits while a worker has room")
    }
  }

  const pass = (quarters: number, frozen: (id: string) => boolean) => {
    for (let quarter = 0; quarter < quarters; quarter++) {
      nowMs += limits.heartbeatMs / 4
      for (const [id, { finals }] of present) if (!frozen(id)) happen({ _tag: "Heartbeat", worker: id, finals })
      happen({ _tag: "Ticked" })
    }
  }

  return {
    seen, requests, present, happen, pass, given,
    now: () => nowMs,
    stall: (ms: number) => {
      nowMs += ms
      happen({ _tag: "Ticked" })
    }
  }
}

const play = (steps: typeof Steps.Type) => {
  const auditor = makeAuditor()
  const { given, happen, pass, present, requests } = auditor
  for (const [index, step] of steps.entries()) {
    const id = "worker" in step ? `w${step.worker}` : ""
    switch (step.do) {
      case "request":
        happen({ _tag: "Requested", token: `t${index}`, client: `c${step.client}`, service: step.of, body: `b${index}`, bytes: 1, deadlineMs: step.deadlineMs })
        break
      case "ready":
        happen({ _tag: "Ready", worker: id, service: step.of, credit: step.credit })
        break
      case "answer": {
        const tokens = given.get(id) ?? []
        const token = tokens[tokens.length - 1 - step.which]
        if (token !== undefined) happen({ _tag: "Answered", worker: id, token, final: step.final, body: `${id}:${token}` })
        break
      }
      case "answer another's": {
        const token = [...given].filter(([holder]) => holder !== id).flatMap(([, tokens]) => tokens)[step.which]
        if (token !== undefined) happen({ _tag: "Answered", worker: id, token, final: true, body: "not mine" })
        break
      }
      case "lie about finals":
        happen({ _tag: "Heartbeat", worker: id, finals: (present.get(id)?.finals ?? 0) + 1 })
        break
      case "leave":
        happen({ _tag: "Disconnected", worker: id })
        break
      case "vanish":
        happen({ _tag: "Unreachable", worker: id })
        break
      case "pass":
        pass(step.quarters, (who) => (step.frozen & (1 << Number(who.slice(1)))) !== 0)
        break
      case "stall":
        auditor.stall(step.ms)
        break
    }
  }
  // In the end one worker for each service comes and does all that is left: what has not expired is answered.
  for (const of of [service, other]) happen({ _tag: "Ready", worker: `last-${of}`, service: of, credit: limits.creditMax })
  for (const id of present.keys()) if (!id.startsWith("last")) happen({ _tag: "Disconnected", worker: id })
  for (let open = [...requests.values()].find(({ holder }) => holder !== undefined); open !== undefined; open = [...requests.values()].find(({ holder }) => holder !== undefined)) {
    happen({ _tag: "Answered", worker: open.holder!.worker, token: open.holder!.token, final: true, body: "done" })
  }
  assert.isEmpty([...requests.values()].filter(({ state }) => state === "waiting"), "nothing is lost while a worker is there")
  return auditor
}

describe("the broker's decisions", () => {
  it.prop("hold whatever clients and workers do: one worker at a time, nothing lost, no answer to the wrong client", [Steps], ([steps]) => {
    play(steps)
  }, { arbitrary: { runs: 500 } })

  it("the property reaches what it is about: losses, answers and stale answers", () => {
    const { seen } = play([
      { do: "ready", worker: 0, of: service, credit: 3 },
      { do: "request", client: 0, of: service, deadlineMs: 60_000 },
      { do: "request", client: 1, of: service, deadlineMs: 60_000 },
      { do: "pass", quarters: 12, frozen: 1 },
      { do: "ready", worker: 1, of: service, credit: 3 },
      { do: "answer", worker: 0, which: 0, final: true },
      { do: "answer", worker: 1, which: 0, final: true }
    ])
    assert.deepStrictEqual(seen, { lost: 3, answers: 2, stale: 1 })
  })
})

const tags = (actions: ReadonlyArray<Action>) => actions.map(({ _tag }) => _tag)
const asked = (token: string): Event => ({ _tag: "Requested", token, client: "c", service, body: token, bytes: 1, deadlineMs: undefined })
const readies = (id: string, credit?: number): Event => ({ _tag: "Ready", worker: id, service, credit })

describe("workers that are lost", () => {
  it("are dropped within three heartbeats, and what they had goes to others before what waits", () => {
    const { handle } = makeBrokerState<string, string>(limits, 0)
    handle(readies("frozen", 2), 0)
    for (const token of ["a", "b", "c"]) handle(asked(token), 0)
    let actions: ReadonlyArray<Action> = []
    let nowMs = 0
    while (!tags(actions).includes("Dropped")) actions = handle({ _tag: "Ticked" }, nowMs += 250)
    assert.isAtMost(nowMs, 3 * limits.heartbeatMs)
    const given = [readies("fresh", 3)].flatMap((event) => handle(event, nowMs))
    assert.deepStrictEqual(given.map((action) => action._tag === "Give" ? [action.worker, action.token] : action), [["fresh", "a.2"], ["fresh", "b.2"], ["fresh", "c.1"]])
  })

  it("a worker that only beats keeps a long job, however long it takes", () => {
    const { handle } = makeBrokerState<string, string>({ ...limits, expiryMs: 1e9, expiryMaxMs: 1e9 }, 0)
    handle(readies("slow", 1), 0)
    handle(asked("long"), 0)
    const actions: Array<Action> = []
    for (let nowMs = 250; nowMs < 600_000; nowMs += 250) {
      if (nowMs % 1000 === 0) actions.push(...handle({ _tag: "Heartbeat", worker: "slow", finals: 0 }, nowMs))
      actions.push(...handle({ _tag: "Ticked" }, nowMs))
    }
    assert.deepStrictEqual([...new Set(tags(actions))], ["Beat"])
    assert.deepStrictEqual(tags(handle({ _tag: "Answered", worker: "slow", token: "long.1", final: true, body: "" }, 600_000)), ["Answer"])
  })

  it("nobody is dropped because the broker itself stood still", () => {
    const { figures, handle } = makeBrokerState<string, string>(limits, 0)
    handle(readies("w", 1), 0)
    handle({ _tag: "Ticked" }, 250)
    handle({ _tag: "Ticked" }, 60_000)
    assert.strictEqual(figures().workers, 1)
  })

  it("counts that do not meet drop a worker: its answer was lost on the way", () => {
    const { handle } = makeBrokerState<string, string>(limits, 0)
    handle(readies("w", 1), 0)
    handle(asked("a"), 0)
    assert.deepStrictEqual(tags(handle({ _tag: "Heartbeat", worker: "w", finals: 0 }, 1)), [])
    assert.deepStrictEqual(tags(handle({ _tag: "Heartbeat", worker: "w", finals: 1 }, 2)), ["Dismiss", "Dropped"])
    assert.deepStrictEqual(handle(readies("w2", 1), 3).map((action) => action._tag === "Give" && action.token), ["a.2"])
  })

  it("a worker that the broker does not know is told so, and may come back", () => {
    const { handle } = makeBrokerState<string, string>(limits, 0)
    assert.deepStrictEqual(tags(handle({ _tag: "Heartbeat", worker: "w", finals: undefined }, 0)), ["Dismiss"])
    assert.deepStrictEqual(tags(handle({ _tag: "Answered", worker: "w", token: "x.1", final: true, body: "" }, 0)), ["Stale", "Dismiss"])
    assert.deepStrictEqual(tags(handle({ _tag: "Disconnected", worker: "w" }, 0)), [])
  })

  it("a plain worker gets one request at a time, and is sent away for a second READY", () => {
    const { handle } = makeBrokerState<string, string>(limits, 0)
    handle(readies("w"), 0)
    assert.deepStrictEqual(tags(handle(asked("a"), 0)), ["Give"])
    assert.deepStrictEqual(tags(handle(asked("b"), 0)), [])
    assert.deepStrictEqual(tags(handle({ _tag: "Answered", worker: "w", token: "a.1", final: true, body: "" }, 0)), ["Answer", "Give"])
    assert.deepStrictEqual(tags(handle(readies("w"), 0)), ["Dismiss", "Dropped"])
  })

  it("a worker that pauses gets nothing more, and gives back what it did not do when it leaves", () => {
    const { figures, handle } = makeBrokerState<string, string>(limits, 0)
    handle(readies("w", 2), 0)
    handle(asked("a"), 0)
    handle(readies("w", 0), 0)
    handle(asked("b"), 0)
    assert.deepStrictEqual(figures(), { waiting: 1, given: 1, workers: 1 })
    handle({ _tag: "Disconnected", worker: "w" }, 0)
    assert.deepStrictEqual(figures(), { waiting: 2, given: 0, workers: 0 })
  })
})

describe("limits", () => {
  it("a full queue refuses, by number and by bytes, and takes again when there is room", () => {
    const { handle } = makeBrokerState<string, string>({ ...limits, queueMax: 2, queueMaxBytes: 10 }, 0)
    handle(readies("busy", 1), 0)
    assert.deepStrictEqual(tags(handle(asked("held"), 0)), ["Give"])
    for (const token of ["a", "b"]) assert.deepStrictEqual(tags(handle(asked(token), 0)), [])
    assert.deepStrictEqual(handle(asked("c"), 0), [{ _tag: "Refuse", client: "c", service, body: "c", because: "full" }])
    handle(readies("w", 2), 0)
    assert.deepStrictEqual(tags(handle({ ...asked("long"), bytes: 11 } as Event, 0)), ["Refuse"])
    assert.deepStrictEqual(tags(handle(asked("d"), 0)), [])
  })

  it("what is past its deadline is not given", () => {
    const { figures, handle } = makeBrokerState<string, string>(limits, 0)
    handle(asked("a"), 0)
    assert.deepStrictEqual(tags(handle(readies("w", 1), limits.expiryMs)), ["Expired"])
    handle({ ...asked("b"), service: other, deadlineMs: 100 } as Event, 0)
    assert.deepStrictEqual(handle({ _tag: "Ticked" }, 100).filter(({ _tag }) => _tag === "Expired"), [{ _tag: "Expired", token: "b" }])
    assert.strictEqual(figures().waiting, 0)
  })

  it("a closing broker refuses, lets workers end, and then sends the rest away", () => {
    const { handle } = makeBrokerState<string, string>(limits, 0)
    handle(readies("w", 1), 0)
    handle(asked("a"), 0)
    handle(asked("b"), 0)
    handle({ _tag: "Closing" }, 0)
    assert.deepStrictEqual(handle(asked("c"), 0).map((action) => action._tag === "Refuse" && action.because), ["closing"])
    assert.deepStrictEqual(tags(handle({ _tag: "Answered", worker: "w", token: "a.1", final: true, body: "" }, 0)), ["Answer", "Give"])
    handle(readies("w", 0), 0)
    handle({ _tag: "Disconnected", worker: "w" }, 0)
    assert.deepStrictEqual(handle({ _tag: "Closed" }, 0).map((action) => action._tag === "Refuse" && [action.body, action.because]), [["b", "closing"]])
  })

  it("no more workers than the limit, and no more credit", () => {
    const { handle } = makeBrokerState<string, string>({ ...limits, workersMax: 1, creditMax: 2 }, 0)
    handle(readies("w", 100), 0)
    assert.deepStrictEqual(tags(handle(readies("x", 1), 0)), ["Dismiss"])
    assert.deepStrictEqual(["a", "b", "c"].flatMap((token) => tags(handle(asked(token), 0))), ["Give", "Give"])
  })
})

describe("requests that nobody will ever work on", () => {
  const forNobody = (token: string, of: string, deadlineMs?: number): Event => ({ _tag: "Requested", token, client: "stranger", service: of, body: token, bytes: 10, deadlineMs })

  it("take a quarter of the queue, by whatever names, and leave it when a worker comes", () => {
    const { figures, handle } = makeBrokerState<string, string>(limits, 0)
    handle(readies("w", 1), 0)
    assert.deepStrictEqual(tags(handle(asked("a"), 0)), ["Give"])
    const refused = Array.from({ length: 30 }, (_, n) => handle(forNobody(`n${n}`, `nobody${n}`), 0)).filter((actions) => tags(actions).includes("Refuse"))
    assert.strictEqual(refused.length, 25)
    for (let n = 0; n < 15; n++) assert.deepStrictEqual(tags(handle(asked(`b${n}`), 0)), [], "the service that has a worker has the rest")
    assert.deepStrictEqual(tags(handle(asked("more"), 0)), ["Refuse"])
    assert.strictEqual(figures().waiting, 20)
    // Its own requests count among those for nobody once it is gone, and no longer when it is back.
    handle({ _tag: "Disconnected", worker: "w" }, 0)
    assert.deepStrictEqual(tags(handle(forNobody("one more", "nobody0"), 0)), ["Refuse"])
    handle({ _tag: "Ready", worker: "n", service: "nobody1", credit: 8 }, 0)
    handle(readies("w2", 8), 0)
    assert.deepStrictEqual(tags(handle(forNobody("again", "nobody9"), 0)), [])
  })

  it("take a quarter of its bytes", () => {
    const { handle } = makeBrokerState<string, string>(limits, 0)
    const large = (token: string): Event => ({ _tag: "Requested", token, client: "stranger", service: "nobody", body: token, bytes: 125, deadlineMs: undefined })
    assert.deepStrictEqual(["a", "b", "c"].map((token) => tags(handle(large(token), 0))), [[], [], ["Refuse"]])
  })

  it("wait no longer than the broker lets them, whatever their senders say", () => {
    const { handle } = makeBrokerState<string, string>(limits, 0)
    handle(forNobody("a", "nobody", 999_999_999_999), 0)
    assert.notInclude(tags(handle({ _tag: "Ticked" }, limits.expiryMaxMs - 1)), "Expired")
    assert.include(tags(handle({ _tag: "Ticked" }, limits.expiryMaxMs)), "Expired")
  })
})
