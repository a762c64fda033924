/**
 * Dunning in a world: declined charges are followed up by the durable workflow, through the storm and for days after it, by a
 * process that dies and begins anew. Nobody is asked before his time or more often than policy says, and every case comes to its end.
 */
import { type ChargeEvent, type ChargeRecord, DunningBook, type DunningView } from "@purser/core"
import { DunningDesk, DunningWorkflow } from "@purser/engine"
import { Context, Effect, Layer } from "effect"
import { WorkflowEngine } from "effect/workflow"
import type { Beside } from "./Beside.ts"
import type { DunningPlan } from "./BesidePlan.ts"
import { isTight } from "./Caps.ts"
import { type Engine, Office, type OfficeShared } from "./Office.ts"
import { listAt } from "./StripeDesk.ts"

const hour = 3_600_000
/** A bank debit that is asked for on the last day is decided by those who sweep, and then followed up anew. */
const roundsMax = 4

/** Settings of the whole world, since policy speaks when a decline is recorded, by whomever. */
export const dunningSettings = (plan: DunningPlan | undefined): Readonly<Record<string, string>> =>
  plan === undefined ? {} : {
    PURSER_DUNNING: "on",
    PURSER_DUNNING_WAITS: plan.waitsMs.length === 0 ? "none" : plan.waitsMs.map((ms) => `${ms} millis`).join(","),
    PURSER_DUNNING_GRACE: `${plan.graceMs} millis`,
    PURSER_DUNNING_FINAL: plan.final
  }

/** The case's own askings, held against what policy says about the decline before each. */
const tooEarly = (events: ReadonlyArray<ChargeEvent>, waitsMs: ReadonlyArray<number>): ReadonlyArray<string> => {
  const problems: Array<string> = []
  let declined: ChargeEvent | undefined
  for (const event of events) {
    if (event.to === "declined") {
      if (event.from !== "declined") declined = event
    } else if (event.detail?.startsWith("reopened by dunning") === true) {
      const waitMs = waitsMs[(declined?.attempt ?? 0) - 1]
      if (declined === undefined || waitMs === undefined) problems.push(`attempt ${event.attempt} was asked for, and policy has none`)
      else if (event.atMs - declined.atMs < waitMs) problems.push(`attempt ${event.attempt} was asked for ${event.atMs - declined.atMs} ms after its decline, and not ${waitMs}`)
    }
  }
  return problems
}

/** Where the cap has no room the decline stands, and is asked for when there is some. */
const waitsForRoom = ({ detail }: DunningView["case"]) => detail?.includes("cap") === true

const endProblems = ({ state }: ChargeRecord, cases: ReadonlyArray<DunningView>, mayLackRoom: boolean): ReadonlyArray<string> => {
  const [last] = cases
  if (last === undefined) return state === "declined" ? ["declined, and nobody has followed it up"] : []
  const open = cases.filter((view) => view.case.state === "open" && !(mayLackRoom && waitsForRoom(view.case))).map((view) => `case ${view.case.number} is open long after its last day`)
  const end = last.case.state
  return [
    ...open,
    ...(end === "paid" && state !== "succeeded" ? [`its case ended as paid, and it is ${state}`] : []),
    ...(end === "left" && state === "declined" ? [`its case was left: ${last.case.detail}`] : []),
    ...(end === "new_method" && state === "declined" ? ["refused with another method, and not followed up any more"] : [])
  ]
}

/** The office that follows up, the customers who bring other cards, and the days that all of it takes. */
export const makeCases = Effect.fnUntraced(function*(shared: OfficeShared, plan: DunningPlan) {
  const { books, cap, ledger, mutant, requests, scenario, sim, storm, tools } = shared
  const book = Context.get(books, DunningBook)
  const run = (services: Context.Context<DunningDesk>) => {
    const desk = Context.get(services, DunningDesk)
    // An engine in memory has forgotten its workflows with the process.
    return Effect.andThen(Effect.ignore(desk.restart), Effect.forever(Effect.andThen(
      Effect.ignore(desk.tend),
      Effect.suspend(() => Effect.sleep(storm.over ? 2 * hour : 60_000))
    )))
  }
  const engine = (built: Context.Context<Engine>) => mutant?.dunning?.(built, tools) ?? built
  const office: Office<DunningDesk> = new Office("dunning", shared, {
    layer: DunningDesk.layer.pipe(Layer.merge(DunningWorkflow.layer), Layer.provide(WorkflowEngine.layerMemory)), run, engine
  })
  const offer = ({ customer, paymentMethod }: DunningPlan["offers"][number]) =>
    Effect.orDie(book.offer(`cus_${customer}`, paymentMethod, { actor: "the customer", reason: "another card" }))
  const lastsMs = Math.max(0, ...plan.offers.map(({ atMs }) => atMs)) + plan.waitsMs.reduce((sum, ms) => sum + ms, 0) + 2 * plan.graceMs + 3 * hour

  return {
    offices: [office],
    start: Effect.gen(function*() {
      yield* office.prepare()
      office.start()
      yield* Effect.forEach(plan.offers, (one) => Effect.forkChild(Effect.delay(offer(one), one.atMs)))
    }),
    isAtRest: Effect.succeed(true),
    later: (others) =>
      Effect.gen(function*() {
        yield* Effect.forEach(plan.deaths, ({ atMs, downMs }) => Effect.forkChild(Effect.delay(Effect.sync(() => office.kill(downMs)), atMs)))
        for (let round = 1; round <= roundsMax; round++) {
          // Sweeps every few seconds would see nothing for days.
          for (const slot of others) if (slot !== office) slot.kill(lastsMs)
          yield* Effect.sleep(lastsMs + 600_000)
          const open = yield* Effect.orDie(book.list({ onlyOpen: true, limit: 100 }))
          if (open.every((view) => waitsForRoom(view.case))) return
        }
      }),
    judge: Effect.gen(function*() {
      const problems: Array<string> = []
      const mayLackRoom = isTight(scenario) || (yield* Effect.orDie(cap.report())).some(({ closed }) => closed)
      const statusOf = new Map((yield* listAt<{ readonly id: string; readonly status: string }>(sim, "/v1/payment_intents")).map(({ id, status }) => [id, status]))
      for (const { chargeKey } of requests) {
        const record = yield* Effect.orDie(ledger.find(chargeKey))
        if (record === undefined) continue
        const cases = yield* Effect.orDie(book.casesOf(chargeKey))
        const events = yield* Effect.orDie(ledger.events(chargeKey))
        const own = [...tooEarly(events, plan.waitsMs), ...endProblems(record, cases, mayLackRoom)]
        const isGivenUp = cases[0]?.case.state === "given_up" && record.state === "declined" && plan.final === "cancel"
        const status = statusOf.get(record.paymentIntentId ?? "")
        if (isGivenUp && scenario.gateway === "payment_intents" && status !== "canceled") own.push(`given up, and its object is ${status}`)
        problems.push(...own.map((problem) => `${chargeKey.slice(0, 6)}: ${problem}`))
      }
      return problems
    })
  } satisfies Beside
})
