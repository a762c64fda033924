/**
 * One world: the engine's workers, clients that want charges, a simulated Stripe, a store, and between them everything that the
 * scenario lets go wrong. It runs until long after the last fault, and is judged then.
 */
import { ChargePause, type ChargeRequest, Ledger, RunLedger, RunRegistry, RunStash, SpendCap } from "@purser/core"
import type { CapDecision } from "@purser/engine"
import { StripeSim } from "@purser/stripe-sim"
import { chargeFor } from "@purser/testkit"
import { Context, Effect, Layer } from "effect"
import { audit } from "./Auditor.ts"
import { makeBeside } from "./Beside.ts"
import { dunningSettings } from "./Cases.ts"
import { endpoint } from "./Hooks.ts"
import { judge, mayBeAbsent, type Told } from "./Judge.ts"
import { Kernel, Stuck } from "./Kernel.ts"
import type { Mutant } from "./Mutant.ts"
import { Network } from "./Network.ts"
import type { Mail } from "./Office.ts"
import type { People } from "./People.ts"
import { Backup } from "./Restored.ts"
import { rngOf } from "./Rng.ts"
import { makeRun } from "./Runs.ts"
import { type PlannedCharge, type Scenario, stormMs } from "./Scenario.ts"
import type { Slot } from "./Slot.ts"
import { Storm } from "./Storm.ts"
import { makeWorkers, type Shared, type Worker } from "./Worker.ts"

/** What became of a world. `steps` and `digest` are the same for the same scenario. */
export interface Verdict {
  readonly violations: ReadonlyArray<string>
  readonly steps: number
  readonly simulatedMs: number
  readonly requests: number
  readonly payments: number
  readonly digest: string
  /** What happened, when it was asked for. */
  readonly lines: ReadonlyArray<string>
}

const stepsMax = 2_000_000
const graceMs = 3_600_000
const dayMs = 25 * graceMs

const requestOf = (caps: Scenario["caps"]) => ({ amountMinor, cap, customerId, item, paymentMethod, stripeCustomerId }: PlannedCharge): ChargeRequest => {
  const { billingPeriod, currency, namespace } = caps[cap]!
  return chargeFor(customerId, billingPeriod, {
    namespace, currency, amountMinor, stripeCustomerId, paymentMethod, allowFuture: false, ...(item === undefined ? {} : { item })
  })
}

const isOpen = (state: string) => state === "planned" || state === "claimed" || state === "attached" || state === "processing"

const world = Effect.fnUntraced(function*(kernel: Kernel, scenario: Scenario, mutant: Mutant | undefined, isTold: boolean) {
  const rng = rngOf(scenario.seed)
  const storm = new Storm(kernel, scenario, isTold)
  const network = new Network(kernel, storm, rng.branch("network"), scenario.clients, mutant)
  const stores = yield* Layer.build(RunLedger.layerMemory.pipe(
    Layer.provideMerge(Layer.mergeAll(Ledger.layerMemory, SpendCap.layerMemory, ChargePause.layerMemory, RunRegistry.layerMemory, RunStash.layerMemory))
  ))
  const ledger = Context.get(stores, Ledger)
  const backup = scenario.beside.restore === undefined ? undefined : new Backup(ledger, Context.get(stores, SpendCap))
  const cap = backup?.cap ?? Context.get(stores, SpendCap)
  const mail: Mail = { receive: () => Effect.succeed(503) }
  const sim = yield* StripeSim.makeInProcess({
    idempotency: scenario.idempotency,
    bankSettles: "20 minutes",
    ...(scenario.beside.hooks === undefined ? {} : { webhooks: [endpoint], receiveWebhook: (request) => mail.receive(request) }),
    ...(scenario.rateLimited ? { rateLimits: { globalPerSecond: 4 } } : {})
  })
  const violations: Array<string> = []
  const requests = scenario.charges.map(requestOf(scenario.caps))
  const people: People = { retry: () => Effect.void }
  const retryByPerson = (paymentMethod: string | null) => Effect.suspend(() => people.retry(paymentMethod))
  const register = Context.get(stores, RunRegistry)
  const tools = { rng: rng.branch("mutant"), ledger, cap, sim, register }
  const shared: Shared = {
    retryByPerson, kernel, storm, scenario, network, sim, mutant, violations, tools, backup,
    // What all processes write to, with its bugs and its auditor.
    ledger: audit(mutant?.ledger?.(tools) ?? ledger, violations, backup),
    cap: mutant?.cap?.(tools) ?? cap,
    pause: Context.get(stores, ChargePause)
  }
  const workers = yield* makeWorkers(shared)
  const caps = scenario.caps.map(({ capMinor, ...scope }): CapDecision => ({ scope: scope as CapDecision["scope"], expected: { expectedMinor: capMinor, headroomPercent: 100 } }))
  yield* Effect.forEach(caps, ({ expected, scope }) => Effect.orDie(cap.open({ ...scope, ...expected! })))
  const run = scenario.run === undefined ? undefined : yield* makeRun({
    kernel, storm, scenario, network, ledger, cap, register, mutant, tools, violations, requests, caps,
    pause: shared.pause,
    book: Context.get(stores, RunLedger),
    stash: Context.get(stores, RunStash)
  }, scenario.run)
  const beside = yield* makeBeside(shared, stores, requests, mail, people)
  const slots: ReadonlyArray<Slot> = [...workers, ...run?.slots ?? [], ...beside.offices]
  workers.forEach((worker) => worker.start())
  yield* beside.start
  yield* Effect.forEach(storm.of("stripe"), ({ fault }) => sim.faults.add(fault))

  const told: Array<Told> = []
  const client = (index: number) => network.client(index)
  /** Asks until something definitive is said. */
  const ask = (index: number, request: ChargeRequest, once: boolean) =>
    Effect.gen(function*() {
      for (let round = 1;; round++) {
        const answer = yield* Effect.result(client(index).submit(request))
        if (answer._tag === "Success") return void told.push({ request, outcome: answer.success })
        if (once || !answer.failure.isRetryable) return
        yield* Effect.sleep(Math.min(600_000, 2000 * round))
      }
    })
  for (const [index, planned] of scenario.run?.alone === true ? [] : scenario.charges.entries()) {
    for (const { atMs, client: from } of planned.asked) yield* Effect.forkChild(Effect.delay(ask(from, requests[index]!, planned.once), atMs))
  }
  if (run !== undefined) yield* run.begin
  const paid = ({ outcome }: Told) => outcome._tag === "Succeeded"
  yield* beside.begin?.({
    slots,
    askAgain: Effect.forEach(requests, (request, index) => Effect.forkScoped(ask(index % scenario.clients, request, false)), { discard: true }),
    forget: () => void told.splice(0, told.length, ...told.filter(paid))
  }) ?? Effect.void
  yield* weather(storm, workers, slots, network, retryByPerson)

  yield* Effect.sleep(Math.max(2 * stormMs, ...storm.of("night").map(({ atMs, forMs }) => atMs + forMs + stormMs)))
  storm.over = true
  yield* sim.faults.clear
  yield* beside.calm ?? Effect.void
  const leaves = run?.leavesRows ?? Effect.succeed(false)
  const untilSettled = Effect.gen(function*() {
    const untilMs = storm.nowMs + graceMs
    while (storm.nowMs < untilMs) {
      const records = yield* Effect.orDie(Effect.forEach(requests, ({ chargeKey }) => ledger.find(chargeKey)))
      const due = yield* Effect.orDie(ledger.releaseDue(1))
      const leavesRows = yield* leaves
      const isAtRest = records.every((record, index) => record === undefined
        ? leavesRows || mayBeAbsent(scenario, index)
        : !isOpen(record.state) || record.quarantine !== null || (leavesRows && record.state === "planned"))
      if (due.length === 0 && isAtRest && (yield* beside.isAtRest) && (run === undefined || (yield* run.isOver))) return true
      yield* Effect.sleep(30_000)
    }
    return false
  })
  const settledSoon = yield* untilSettled
  // What was on its way all the time arrives now, a day late where a day was ordered. A call whose key holds a stored 500 is open
  // for as long as Stripe keeps keys, if nothing but the key stands before a second payment.
  const late = scenario.faults.some((fault) => fault.kind === "stripe" && "delayMs" in fault.fault.action && fault.fault.action.delayMs > graceMs)
  if (late || !settledSoon) {
    slots.forEach((slot) => slot.kill(dayMs))
    yield* Effect.sleep(dayMs)
  }
  yield* sim.faults.release
  yield* sim.rollForward
  yield* Effect.sleep(60_000)
  yield* beside.later?.(slots) ?? Effect.void
  yield* untilSettled
  violations.push(
    ...network.violations,
    ...(yield* judge({ scenario, requests, ledger, cap, sim, told, leavesRows: yield* leaves })),
    ...(run === undefined ? [] : yield* run.problems),
    ...(yield* beside.judge)
  )
  // Where a call names no key the SDK draws one, from a source of chance that is not the world's.
  const journal = (yield* sim.requests).map((entry) => entry.idempotencyKey?.startsWith("stripe-node-retry-") === true ? { ...entry, idempotencyKey: null } : entry)
  const books = yield* sim.books
  return {
    violations,
    steps: kernel.steps,
    simulatedMs: storm.nowMs,
    requests: journal.length,
    payments: books.reduce((sum, entry) => sum + entry.payments, 0),
    lines: storm.lines,
    digest: digestOf(JSON.stringify([journal, books, told]))
  }
})

/** A short text that differs when a world went another way. */
const digestOf = (text: string): string => {
  const rng = rngOf(text)
  return Array.from({ length: 4 }, () => rng.between(0, 0xffff).toString(16).padStart(4, "0")).join("")
}

/** What comes at its time. */
const weather = Effect.fnUntraced(function*(
  storm: Storm, workers: ReadonlyArray<Worker>, slots: ReadonlyArray<Slot>, network: Network, retryByPerson: (paymentMethod: string | null) => Effect.Effect<void>
) {
  const at = (atMs: number, act: Effect.Effect<unknown>) => Effect.forkChild(Effect.delay(act, atMs))
  yield* Effect.forEach(storm.of("clientRestart"), ({ atMs, client }) => at(atMs, Effect.sync(() => network.restart(client))))
  yield* Effect.forEach(storm.of("stop"), ({ atMs, downMs, worker }) => at(atMs, Effect.sync(() => workers[worker]!.stop(downMs))))
  yield* Effect.forEach(storm.of("night"), ({ atMs, forMs }) => at(atMs, Effect.sync(() => slots.forEach((slot) => slot.kill(forMs)))))
  yield* Effect.forEach(storm.of("retryByPerson"), ({ atMs, paymentMethod }) => at(atMs, retryByPerson(paymentMethod)))
})

/** Runs a scenario. What breaks the world itself is a violation too. */
export const runScenario = async (scenario: Scenario, mutant?: Mutant, isTold = false): Promise<Verdict> => {
  const kernel = new Kernel(rngOf(scenario.seed).branch("kernel"), {
    PURSER_SWEEP_INTERVAL: "20 seconds", PURSER_RUN_PAUSE: "15 seconds", PURSER_RUN_PAGE: "2", PURSER_WEBHOOK_INTERVAL: "60 seconds",
    ...dunningSettings(scenario.beside.dunning)
  })
  return kernel.run(Effect.scoped(world(kernel, scenario, mutant, isTold)), stepsMax).catch((error: unknown): Verdict => ({
    violations: [error instanceof Stuck ? `stuck: ${error.message}` : `broken: ${error instanceof Error ? error.stack : String(error)}`],
    steps: kernel.steps,
    simulatedMs: 0,
    requests: 0,
    payments: 0,
    lines: [],
    digest: "none"
  }))
}
