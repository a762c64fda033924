/**
 * The engine's real pipelines and sweepers as a machine that is moved one step at a time: a step is one call of the ledger, the
 * cap or the processor, or a place at which a process may stand still with a time in its hand. Who moves next, who dies, whose answer is lost and when time passes is decided outside.
 *
 * The processor here forgets every idempotency key at once. Nothing runs by itself: no promise, no timer, no chance.
 */
import {
  ChargeError, ChargeGateway, type ChargeOutcome, type ChargeRequest, FaultPoint, type GatewayPayment, GatewayTimeout, Ledger, SpendCap
} from "@purser/core"
import { ChargePipeline, PipelineOptions, retryPolicy, Sweeper } from "@purser/engine"
import { Clock, ConfigProvider, Context, Duration, Effect, type Exit, Layer, Random, References, Scheduler } from "effect"

/** What may happen next. `worker` is a number of a worker. */
export type Action =
  | { readonly kind: "step" | "lose" | "crash" | "restart"; readonly worker: number }
  | { readonly kind: "lease" }

/** How much may go wrong in one history. */
export interface Bounds {
  readonly workers: number
  readonly crashes: number
  /** Answers of the processor that are lost after the call was carried out. */
  readonly losses: number
  /** Times that all leases run out. */
  readonly leases: number
  /** Lives after the first, each of which begins with a sweep. */
  readonly restarts: number
}

/** A bug for the machine to carry. */
export interface MachineBug {
  readonly ledger?: (ledger: Ledger["Service"]) => Ledger["Service"]
  readonly gateway?: (gateway: ChargeGateway["Service"]) => ChargeGateway["Service"]
}

interface Life {
  pending: { readonly call: string; readonly canLose: boolean; readonly go: (lose: boolean) => void } | undefined
  /** All that this life was told: with it, its inner state is known. */
  heard: string
  state: "running" | "done" | "dead"
  outcome: Exit.Exit<unknown, unknown> | undefined
}

const leaseMs = 15_000

/** Read once: a machine is begun many thousands of times. */
const settings = Effect.runSync(PipelineOptions.fromConfig.pipe(
  Effect.map((read) => ({ ...read, retry: retryPolicy({ attemptsMax: 3, backoffMs: 0, backoffMaxMs: 0 }), handBackMs: 0, outageAfter: 1000 })),
  Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({}))
))

/** One run of the machine, from its beginning. */
export class Machine {
  readonly objects: Array<GatewayPayment> = []
  readonly lives: Array<Life> = []
  private readonly left: { crashes: number; losses: number; leases: number; restarts: number }
  private nowMs = Date.UTC(2026, 10, 15)
  private readonly ready: Array<() => void> = []
  private readonly context: Context.Context<never>
  private readonly ledger: Ledger["Service"]
  private readonly cap: SpendCap["Service"]
  private readonly request: ChargeRequest
  private readonly bug: MachineBug

  constructor(request: ChargeRequest, bounds: Bounds, bug: MachineBug = {}) {
    this.request = request
    this.bug = bug
    this.left = { crashes: bounds.crashes, losses: bounds.losses, leases: bounds.leases, restarts: bounds.restarts }
    const time = Effect.sync(() => this.nowMs)
    const nanos = Effect.sync(() => BigInt(this.nowMs) * 1_000_000n)
    this.context = Context.make(Clock.Clock, {
      currentTimeMillisUnsafe: () => this.nowMs,
      currentTimeMillis: time,
      currentTimeNanosUnsafe: () => BigInt(this.nowMs) * 1_000_000n,
      currentTimeNanos: nanos,
      monotonicTimeNanosUnsafe: () => BigInt(this.nowMs) * 1_000_000n,
      monotonicTimeNanos: nanos,
      // Who waits for a while waits for ever: what a timer would do is a step that another history takes.
      sleep: (duration) => Duration.toMillis(duration) <= 0 ? Effect.yieldNow : Effect.never
    }).pipe(
      Context.add(Scheduler.Scheduler, {
        executionMode: "async",
        shouldYield: () => false,
        makeDispatcher: () => ({ scheduleTask: (task: () => void) => void this.ready.push(task), flush: () => this.drain() })
      }),
      Context.add(Random.Random, { nextDoubleUnsafe: () => 0.5, nextIntUnsafe: () => 1 }),
      Context.add(References.MinimumLogLevel, "None"),
      Context.add(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({}))
    ) as Context.Context<never>
    const stores = this.now(Effect.scoped(Layer.build(Layer.mergeAll(Ledger.layerMemory, SpendCap.layerMemory))))
    const ledger = Context.get(stores, Ledger)
    this.ledger = bug.ledger?.(ledger) ?? ledger
    this.cap = Context.get(stores, SpendCap)
    this.now(this.cap.open({ namespace: request.namespace, billingPeriod: request.billingPeriod, currency: request.currency, expectedMinor: BigInt(request.amountMinor), headroomPercent: 100 }))
    for (let worker = 0; worker < bounds.workers; worker++) this.begin(worker, ({ pipeline }) => pipeline.charge(request))
  }

  private drain() {
    for (let task = this.ready.shift(); task !== undefined; task = this.ready.shift()) task()
  }

  /** Runs what needs nobody's decision. */
  private now<A, E>(effect: Effect.Effect<A, E>): A {
    const fiber = Effect.runForkWith(this.context)(effect)
    this.drain()
    const exit = fiber.pollUnsafe()
    if (exit === undefined) throw new Error("Bug: it waits")
    return Effect.runSync(exit)
  }

  private begin(worker: number, work: (engine: { readonly pipeline: ChargePipeline["Service"]; readonly sweeper: Sweeper["Service"] }) => Effect.Effect<unknown, unknown>) {
    const life: Life = { pending: undefined, heard: "", state: "running", outcome: undefined }
    this.lives[worker] = life
    const engine = Sweeper.layerNoDeps.pipe(
      Layer.provideMerge(ChargePipeline.layer),
      Layer.provide(Layer.mergeAll(
        Layer.succeed(Ledger, this.gatedLedger(life)),
        Layer.succeed(SpendCap, this.gatedCap(life)),
        Layer.succeed(ChargeGateway, this.processor(life)),
        // Between reading the clock and what follows from it a process may stand still: these places are steps of their own.
        Layer.succeed(FaultPoint, (place) => place === "after-claim" || place === "before-confirm" ? this.gate(life, place, Effect.void) : Effect.void)
      )),
      Layer.provide(Layer.succeed(PipelineOptions, { ...settings, worker: `w${worker}` }))
    )
    const fiber = Effect.runForkWith(this.context)(Effect.scoped(Effect.flatMap(Layer.build(engine), (built) =>
      work({ pipeline: Context.get(built, ChargePipeline), sweeper: Context.get(built, Sweeper) }))))
    fiber.addObserver((exit) => {
      if (life.state === "running") life.state = "done"
      life.outcome = exit
    })
    this.drain()
  }

  /** A call that waits until it is let go; a lost answer is one of the processor's. */
  private gate<A, E>(life: Life, call: string, act: Effect.Effect<A, E>, lost?: E): Effect.Effect<A, E> {
    return Effect.callback<boolean>((resume) => {
      life.pending = { call, canLose: lost !== undefined, go: (lose) => resume(Effect.succeed(lose)) }
    }).pipe(
      Effect.flatMap((lose) => lose && lost !== undefined ? Effect.andThen(act, Effect.fail(lost)) : act),
      Effect.onExit((exit) =>
        Effect.sync(() => {
          life.heard += `|${call}:${JSON.stringify(exit, (name, value) => name === "leaseLeftMs" || name === "request" || typeof value === "bigint" ? undefined : value)}`
        }))
    )
  }

  private gatedLedger(life: Life): Ledger["Service"] {
    const { ledger } = this
    return {
      ...ledger,
      claim: (request, worker) => this.gate(life, "claim", ledger.claim(request, worker)),
      attach: (input) => this.gate(life, "attach", ledger.attach(input)),
      settle: (input) => this.gate(life, "settle", ledger.settle(input)),
      extend: (lease) => this.gate(life, "extend", ledger.extend(lease)),
      handBack: (lease, retryAfterMs, detail) => this.gate(life, "handBack", ledger.handBack(lease, retryAfterMs, detail)),
      renew: (input) => this.gate(life, "renew", ledger.renew(input)),
      quarantine: (lease, detail) => this.gate(life, "quarantine", ledger.quarantine(lease, detail)),
      takeExpired: (worker, limit) => this.gate(life, "takeExpired", ledger.takeExpired(worker, limit)),
      find: (chargeKey) => this.gate(life, "find", ledger.find(chargeKey)),
      markReleased: (chargeKey, attempt) => this.gate(life, "markReleased", ledger.markReleased(chargeKey, attempt))
    }
  }

  private gatedCap(life: Life): SpendCap["Service"] {
    const { cap } = this
    return {
      ...cap,
      reserve: (input) => this.gate(life, "reserve", cap.reserve(input)),
      reserveByForce: (input) => this.gate(life, "reserveByForce", cap.reserveByForce(input)),
      release: (chargeKey, attempt) => this.gate(life, "release", cap.release(chargeKey, attempt))
    }
  }

  /** A processor that knows no keys: each create makes an object, and an object is paid at most once. */
  private processor(life: Life): ChargeGateway["Service"] {
    const { objects } = this
    const lost = new ChargeError({ reason: new GatewayTimeout({ operation: "call", timeoutMs: 1 }), chargeKey: this.request.chargeKey, requestId: null })
    const change = (id: string, to: Partial<GatewayPayment>) =>
      Effect.sync(() => {
        const at = objects.findIndex((object) => object.id === id)
        return objects[at] = { ...objects[at]!, ...to }
      })
    const read = (id: string) => change(id, {})
    const honest: ChargeGateway["Service"] = {
      name: "forgetful",
      create: ({ chargeKey, generation, request }) =>
        Effect.sync(() => {
          const made: GatewayPayment = {
            id: `pi_${objects.length + 1}`, status: "unconfirmed", amountMinor: request.amountMinor, amountReceivedMinor: 0, currency: request.currency,
            stripeCustomerId: request.stripeCustomerId, chargeKey, generation, chargeId: null, decline: null
          }
          objects.push(made)
          return made
        }),
      find: () => Effect.sync(() => objects.find(({ status }) => status === "succeeded") ?? objects.find(({ status }) => status === "unconfirmed")),
      retrieve: (_, id) => read(id),
      defaultPaymentMethod: () => Effect.succeed("pm_card_visa"),
      confirm: (_, { id }) =>
        Effect.flatMap(read(id), (object) => object.status === "unconfirmed" ? change(id, { status: "succeeded", amountReceivedMinor: object.amountMinor, chargeId: `ch_${id}` }) : Effect.succeed(object)),
      cancel: (_, id) => Effect.flatMap(read(id), (object) => object.status === "unconfirmed" ? change(id, { status: "canceled" }) : Effect.succeed(object))
    }
    const real = this.bug.gateway?.(honest) ?? honest
    return {
      ...real,
      create: (order, suffix) => this.gate(life, "create", real.create(order, suffix), lost),
      find: (order, sinceMs) => this.gate(life, "lookFor", real.find(order, sinceMs), lost),
      retrieve: (order, id) => this.gate(life, "retrieve", real.retrieve(order, id), lost),
      confirm: (order, input) => this.gate(life, "confirm", real.confirm(order, input), lost),
      cancel: (order, id) => this.gate(life, "cancel", real.cancel(order, id), lost)
    }
  }

  /** All that may happen now. */
  actions(): ReadonlyArray<Action> {
    const { left } = this
    const found: Array<Action> = []
    for (const [worker, { pending, state }] of this.lives.entries()) {
      if (state === "running" && pending !== undefined) {
        found.push({ kind: "step", worker })
        if (left.losses > 0 && pending.canLose) found.push({ kind: "lose", worker })
        if (left.crashes > 0) found.push({ kind: "crash", worker })
      } else if (left.restarts > 0 && state !== "running") found.push({ kind: "restart", worker })
    }
    if (left.leases > 0 && found.length > 0) found.push({ kind: "lease" })
    return found
  }

  /** Does it. */
  act(action: Action) {
    if (action.kind === "lease") {
      this.left.leases -= 1
      this.nowMs += leaseMs + 1
      return
    }
    const life = this.lives[action.worker]!
    switch (action.kind) {
      case "crash":
        this.left.crashes -= 1
        life.state = "dead"
        life.pending = undefined
        return
      case "restart":
        this.left.restarts -= 1
        return this.begin(action.worker, ({ sweeper }) => sweeper.sweepOnce)
      default: {
        const { pending } = life
        if (action.kind === "lose") this.left.losses -= 1
        life.pending = undefined
        pending?.go(action.kind === "lose")
        this.drain()
      }
    }
  }

  /** Two machines with the same text behave alike from here on. */
  text(): string {
    const { events: _, ...row } = { events: undefined, ...this.now(this.ledger.find(this.request.chargeKey)) }
    return JSON.stringify([
      row, this.nowMs, this.left, this.objects, this.now(this.cap.report()),
      this.lives.map(({ heard, pending, state }) => [state, state === "running" ? heard : "", pending?.call])
    ], (_name, value) => typeof value === "bigint" ? Number(value) : value)
  }

  payments(): number {
    return this.objects.filter(({ status }) => status === "succeeded").length
  }

  /** What is wrong in this very state. */
  problem(): string | undefined {
    const row = this.now(this.ledger.find(this.request.chargeKey))
    if (this.payments() > 1) return "paid twice"
    if (row?.state === "succeeded" && this.payments() === 0) return "recorded as paid, and is not"
    if (row?.quarantine != null) return `quarantined: ${row.quarantine}`
    if (row !== undefined && (row.state === "declined" || row.state === "rejected" || row.state === "canceled")) return `recorded as ${row.state}`
    return undefined
  }

  /** From a state in which nothing goes on: once leases have run out, one undisturbed sweep must end in one payment. */
  problemAtRest(): string | undefined {
    this.nowMs += leaseMs + 1
    const claimed = this.now(this.ledger.find(this.request.chargeKey)) !== undefined
    this.begin(0, ({ pipeline, sweeper }) => claimed ? sweeper.sweepOnce : pipeline.charge(this.request))
    for (let steps = 0; this.lives[0]!.state === "running"; steps++) {
      if (steps > 100) return "a sweep goes on for ever"
      this.act({ kind: "step", worker: 0 })
    }
    const row = this.now(this.ledger.find(this.request.chargeKey))
    const outcome: ChargeOutcome | null | undefined = row?.outcome
    if (outcome?._tag !== "Succeeded" || this.payments() !== 1) return `an undisturbed sweep leaves it ${row?.state} with ${this.payments()} payments`
    return undefined
  }
}
