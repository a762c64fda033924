/** One run of a billing file over one transport under a schedule of faults, and the verdict on it. */
import { Database, DatabaseClock } from "@purser/postgres"
import { StripeSim } from "@purser/stripe-sim"
import { paidAtLeast } from "@purser/test-e2e/src/Desk.ts"
import { proxyTo } from "@purser/test-e2e/src/Proxy.ts"
import { rngOf } from "@purser/test-simulation/src/Rng.ts"
import { Clock, Effect, Layer, Redacted } from "effect"
import { join } from "node:path"
import { bill, billsOf, periodOf, type Producer } from "./Billing.ts"
import type { Cluster } from "./Cluster.ts"
import type { Disk } from "./Disk.ts"
import { describeFault, type Fault, type FaultKind, kindsOf, scheduleOf, type Transport } from "./Faults.ts"
import { judge } from "./Judge.ts"
import { raise, type Stage } from "./Stage.ts"

/** Where the ledger is: on a server, alone or with a standby, or in a folder on a small disk. */
export type Store = { readonly kind: "server"; readonly cluster: Cluster; readonly name: string } | { readonly kind: "folder"; readonly disk: Disk }

/** What is played. */
export interface Part {
  readonly seed: string
  readonly transport: Transport
  readonly store: Store
  readonly rows: number
  /** How often each kind of fault strikes. */
  readonly each: number
  /** Only these kinds; all that fit when empty. */
  readonly only: ReadonlyArray<FaultKind>
}

/** How it ended. */
export interface Verdict {
  readonly violations: ReadonlyArray<string>
  readonly schedule: ReadonlyArray<Fault>
  /** Faults that struck before the run was over. */
  readonly struck: ReadonlyArray<Fault>
  readonly payments: number
  /** Times that the run's command was started. */
  readonly starts: number
  readonly ms: number
  readonly idempotency: boolean
  /** How starts of the run's command ended that nobody had killed. */
  readonly complaints: ReadonlyArray<string>
}

/** Charges under way at once, and how long the payment of one takes: less than a message waits for its answer (`Stage.ts`). */
const atOnce = { least: 4, most: 32 }
const confirmMs = { least: 150, most: 700 }

/** How long a fault lasts through which others go on paying; what else lasts holds everybody up, or is over at once. */
const paidThroughMs = ({ forMs, kind }: Fault): number => kind === "freeze-worker" ? forMs : kind === "kill-worker" ? 2000 : 0

/**
 * Payments come at such a pace that the faults fall into the run, also where bills are few: no more are under way than lie between two
 * faults, and the faults that do not hold payments up do not outlast all of them.
 */
const paceOf = (schedule: ReadonlyArray<Fault>, rows: number) => {
  const concurrency = Math.min(atOnce.most, Math.max(atOnce.least, Math.floor(rows / schedule.length)))
  const lastsMs = schedule.reduce((sum, fault) => sum + paidThroughMs(fault), 0)
  return { concurrency, delayMs: Math.min(confirmMs.most, Math.max(confirmMs.least, Math.ceil(concurrency * lastsMs / rows))) }
}

/** As long as a run may take to find that it cannot write, and as long as it may stand still without a reason. */
const fullMs = { most: 60_000, still: 4_000 }

/** Waits until nothing is paid any more; dies when payments just go on, for then nobody has missed the room. */
const stalled = (sim: StripeSim["Service"]): Effect.Effect<void> =>
  Effect.gen(function*() {
    const paid = Effect.map(sim.books, (books) => books.reduce((sum, { payments }) => sum + payments, 0))
    for (let waitedMs = 0; waitedMs < fullMs.most; waitedMs += fullMs.still) {
      const before = yield* paid
      yield* Effect.sleep(fullMs.still)
      if ((yield* paid) === before) return
    }
    return yield* Effect.die(new Error("the disk was full, and charges went on"))
  })

const strike = (fault: Fault, at: {
  readonly stage: Stage
  readonly run: Producer
  readonly stripe: { readonly reset: Effect.Effect<void> }
  readonly store: Store
  readonly sim: StripeSim["Service"]
  readonly database: Layer.Layer<Layer.Success<ReturnType<typeof Database.layerUrl>>, unknown>
}): Effect.Effect<void> => {
  const { run, sim, stage, store, stripe } = at
  const worker = stage.workers[fault.worker]
  const still = (signal: (name: NodeJS.Signals) => Effect.Effect<void>) =>
    Effect.ensuring(Effect.andThen(signal("SIGSTOP"), Effect.sleep(fault.forMs)), signal("SIGCONT"))
  const server = store.kind === "server" ? store.cluster : undefined
  switch (fault.kind) {
    case "kill-worker":
      return worker?.replace ?? Effect.void
    case "freeze-worker":
      return worker === undefined ? Effect.void : still(worker.signal)
    case "jump-worker":
      return worker?.signal("SIGUSR2") ?? Effect.void
    case "kill-producer":
      return run.signal("SIGKILL")
    case "freeze-producer":
      return still(run.signal)
    case "kill-between":
      return stage.between?.replace ?? Effect.void
    case "freeze-between":
      return stage.between === undefined ? Effect.void : still(stage.between.signal)
    case "reset-messages":
      return Effect.forEach(stage.messages, ({ reset }) => reset, { discard: true })
    case "reset-stripe":
      return stripe.reset
    case "reset-database":
      return server?.proxy.reset ?? Effect.void
    case "restart-database":
      return server?.restart(fault.mode) ?? Effect.void
    case "fail-over":
      return server?.failOver ?? Effect.void
    case "move-clocks":
      return DatabaseClock.advance(fault.byMs).pipe(
        Effect.andThen(fault.byMs > 0 ? sim.advanceClock(fault.byMs) : Effect.void),
        Effect.provide(Layer.fresh(at.database)),
        Effect.scoped,
        Effect.orDie
      )
    case "fill-disk":
      return store.kind === "folder" ? Effect.ensuring(Effect.andThen(store.disk.fill, stalled(sim)), store.disk.free) : Effect.void
  }
}

/** Plays a part to its end. */
export const play = Effect.fnUntraced(function*(part: Part) {
  const { store, transport } = part
  const rng = rngOf(`${part.seed}/${transport}`)
  const schedule = scheduleFor(part)
  const { concurrency, delayMs } = paceOf(schedule, part.rows)
  const idempotency = rng.branch("idempotency").chance(0.5)
  const beganMs = yield* Clock.currentTimeMillis

  const sim = yield* StripeSim
  yield* sim.setIdempotency(idempotency)
  yield* sim.faults.add({ match: { path: "/v1/payment_intents/*/confirm", times: "always" }, action: { kind: "delay", at: "during", delayMs } })
  const stripe = yield* proxyTo(sim.port)
  const bills = billsOf(part.rows)
  const period = periodOf(1)
  const url = store.kind === "server" ? yield* store.cluster.createDatabase(store.name) : undefined
  const dataDir = store.kind === "folder" ? join(store.disk.folder, "ledger") : ""
  const database = url === undefined ? Database.layerEmbedded({ dataDir, fsync: false }) : Database.layerUrl(Redacted.make(url), { maxConnections: 4 })
  const env: Record<string, string> = { PURSER_STRIPE_URL: `http://127.0.0.1:${stripe.port}`, ...(url === undefined ? { PURSER_DATA_DIR: dataDir } : { PURSER_DATABASE_URL: url }) }

  const stage = yield* raise(transport, env)
  const run = yield* bill({ period, bills, concurrency, stage, env })
  const struck: Array<Fault> = []
  const storm = Effect.forEach(schedule, (fault) =>
    Effect.gen(function*() {
      yield* paidAtLeast(sim, fault.at)
      // To its end, also where the run ends meanwhile: who is half started cannot leave in good order.
      yield* Effect.uninterruptible(strike(fault, { stage, run, stripe, store, sim, database }))
      struck.push(fault)
    }), { discard: true })
  // A storm that dies ends the play; one that is over waits for the run.
  const account = yield* Effect.raceFirst(run.whole, Effect.andThen(storm, Effect.never))

  const violations: Array<string> = []
  for (const [index, worker] of stage.workers.entries()) {
    const { code, signal, stderr } = yield* worker.leave
    // One that was killed near the end of the run, and begun anew, may not serve yet: then being stopped is status 130.
    const wasYoung = code === 130 && schedule.some(({ kind }) => kind === "kill-worker")
    if (code !== 0 && !wasYoung) violations.push(`worker ${index} ended with ${code ?? signal}: ${stderr.slice(-400)}`)
  }
  violations.push(...yield* judge({ database, sim, period, bills, account }))
  if (schedule.length > 1 && struck.length < schedule.length * 0.75) violations.push(`the run was over when ${struck.length} of ${schedule.length} faults had struck: it says too little`)
  const payments = (yield* sim.books).reduce((sum, entry) => sum + entry.payments, 0)
  const ms = (yield* Clock.currentTimeMillis) - beganMs
  const verdict: Verdict = { violations, schedule, struck, payments, starts: yield* run.starts, ms, idempotency, complaints: run.complaints }
  return verdict
}, (effect) => Effect.scoped(Effect.provide(effect, Layer.fresh(StripeSim.layer()))))

const scheduleFor = ({ each, only, rows, seed, store, transport }: Part): ReadonlyArray<Fault> => {
  const kinds = kindsOf(transport, store.kind === "folder" ? "folder" : store.cluster.isReplicated ? "replicated" : "server")
  return scheduleOf(rngOf(`${seed}/${transport}/faults`), kinds.filter((kind) => only.length === 0 || only.includes(kind)), rows, each)
}

/** What a person needs to see the same again; `struck` is what is known of the faults that struck. */
export const describeFailure = (part: Part, problems: ReadonlyArray<string>, struck?: ReadonlyArray<Fault>): string =>
  [
    `seed ${part.seed} fails over ${part.transport}: pnpm chaos --seed ${part.seed} --transport ${part.transport} --rows ${part.rows} --each ${part.each}${part.only.map((kind) => ` --fault ${kind}`).join("")}`,
    ...problems.slice(0, 40).map((problem) => `  ${problem}`),
    ...problems.length > 40 ? [`  and ${problems.length - 40} more`] : [],
    "the schedule:",
    ...scheduleFor(part).map((fault) => `  ${describeFault(fault)}${struck === undefined || struck.some(({ at, kind }) => at === fault.at && kind === fault.kind) ? "" : " (not reached)"}`)
  ].join("\n")
