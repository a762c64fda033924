/**
 * A store that goes back to how it was: what was written since the copy was made is forgotten, at Stripe nothing is. Everybody
 * stands still meanwhile, and then goes on as the pages for operators say: with a restore point, and with the same requests again.
 */
import { type ChargeKey, type Ledger, SpendCap } from "@purser/core"
import { memoryRows } from "@purser/core/testing"
import { type Difference, Reconciler } from "@purser/engine"
import { Context, Effect, Exit, Layer, Option } from "effect"
import type { Beside, Everybody } from "./Beside.ts"
import type { RestorePlan } from "./BesidePlan.ts"
import { isTight } from "./Caps.ts"
import { startMs } from "./Kernel.ts"
import { Office, type OfficeShared } from "./Office.ts"
import { isRetried } from "./Scenario.ts"

type CapShape = SpendCap["Service"]
type Rows = NonNullable<ReturnType<typeof memoryRows.get>>

/** A little before the copy was made: clocks differ, and Stripe counts in seconds. */
const marginMs = 60_000
/** How long a comparison with the account takes at the most, and how often it is made before somebody starts the workers. */
const comparingMs = 120_000
const looksMax = 12

/** A ledger's rows and a cap of which a copy can be made and put back. */
export class Backup {
  readonly cap: CapShape
  /** For everything that runs after the store went back. */
  restorePointMs: number | undefined
  /** Told when it goes back. */
  readonly onRestore: Array<() => void> = []
  private readonly rows: Rows
  private kept: Rows = new Map()
  private inner: CapShape
  private readonly acts: Array<Effect.Effect<unknown>> = []
  private copied = false

  constructor(ledger: Ledger["Service"], cap: CapShape) {
    this.rows = memoryRows.get(ledger)!
    this.inner = cap
    // A cap is what was done to it, one act after the other.
    const done = <A, E>(act: (cap: CapShape) => Effect.Effect<A, E>) =>
      Effect.suspend(() => {
        if (!this.copied) this.acts.push(Effect.suspend(() => Effect.ignore(act(this.inner))))
        return act(this.inner)
      })
    this.cap = {
      open: (input) => done((inner) => inner.open(input)),
      reserve: (input) => done((inner) => inner.reserve(input)),
      reserveByForce: (input) => done((inner) => inner.reserveByForce(input)),
      release: (chargeKey, attempt) => done((inner) => inner.release(chargeKey, attempt)),
      raise: (input) => done((inner) => inner.raise(input)),
      close: (scope) => done((inner) => inner.close(scope)),
      reopen: (input) => done((inner) => inner.reopen(input)),
      report: (period) => Effect.suspend(() => this.inner.report(period))
    }
  }

  private static copyOf(rows: Rows): Rows {
    return new Map([...rows].map(([key, row]): [ChargeKey, typeof row] => [key, { ...row, events: [...row.events] }]))
  }

  copy() {
    this.kept = Backup.copyOf(this.rows)
    this.copied = true
  }

  readonly putBack: Effect.Effect<void> = Effect.gen({ self: this }, function*() {
    this.rows.clear()
    for (const [key, row] of Backup.copyOf(this.kept)) this.rows.set(key, row)
    this.inner = Context.get(yield* Effect.scoped(Layer.build(SpendCap.layerMemory)), SpendCap)
    for (const act of this.acts) yield* act
    this.onRestore.forEach((told) => told())
  })
}

/** How the store goes back, and how all go on. */
export const makeRestored = Effect.fnUntraced(function*(shared: OfficeShared, backup: Backup, plan: RestorePlan) {
  const { kernel, mutant, requests, scenario, storm } = shared
  // Where room is short, what was paid has to be known before anybody asks for room; and nobody asks anew for what a person had retried.
  const isReconciled = plan.reconciled || isTight(scenario) || isRetried(scenario)
  const office: Office<Reconciler> = new Office("restoring", shared, { layer: Reconciler.layerNoDeps })
  const atMs = (ms: number) => Effect.suspend(() => Effect.sleep(Math.max(0, startMs + ms - kernel.nowMs)))
  const sinceMs = startMs + plan.savedAtMs - marginMs
  let isOver = false
  const periods = [...new Set(requests.map(({ billingPeriod }) => billingPeriod))]
  /** Whether nothing is on its way any more: what a bank has not decided is not taken in, and has no room yet. */
  const compare = Effect.gen(function*() {
    let undecided = 0
    const onDifference = ({ objects, repaired }: Difference) =>
      Effect.sync(() => {
        if (repaired === null && objects.some(({ status }) => status === "processing")) undecided += 1
      })
    const ends = yield* Effect.forEach(periods, (billingPeriod) =>
      office.ask((services) => Context.get(services, Reconciler).reconcile({ billingPeriod, sinceMs, dryRun: false }, onDifference)))
    return undecided === 0 && ends.every((end) => end !== undefined && Exit.isSuccess(end))
  })

  const happens = ({ askAgain, forget, slots }: Everybody) =>
    Effect.gen(function*() {
      yield* atMs(plan.savedAtMs)
      backup.copy()
      yield* atMs(plan.restoredAtMs)
      slots.forEach((slot) => slot.kill(plan.downMs + comparingMs))
      yield* backup.putBack
      forget()
      storm.tell("the store", `is as it was at ${plan.savedAtMs}`)
      if (mutant?.forgetsRestorePoint !== true) backup.restorePointMs = sinceMs
      yield* Effect.sleep(plan.downMs)
      if (isReconciled) {
        office.start()
        for (let look = 1; look <= looksMax; look++) {
          const done = yield* Effect.timeoutOption(compare, comparingMs - 1000)
          if (Option.getOrElse(done, () => false)) break
          slots.forEach((slot) => slot.kill(2 * comparingMs))
          yield* Effect.sleep(comparingMs)
        }
        office.process.kill()
      }
      yield* Effect.sleep(comparingMs)
      yield* askAgain
      // What is asked for is on its way a moment later.
      yield* Effect.sleep(comparingMs)
      isOver = true
    })

  return {
    offices: [],
    start: isReconciled ? office.prepare() : Effect.void,
    begin: (everybody) => Effect.asVoid(Effect.forkScoped(happens(everybody))),
    isAtRest: Effect.sync(() => isOver),
    judge: Effect.succeed([])
  } satisfies Beside
})
