/**
 * The billing run of a world, from the side of the people who have to do with it: they start it, pause, resume and cancel it, go on
 * with it until nothing is left, and are told how it ended.
 */
import { ChargeClient, type ChargeKey, ChargePause, type ChargeRequest, isRunOver, type Ledger, RunLedger, type RunRecord, RunRegistry, type RunStash, SpendCap } from "@purser/core"
import { BillingRun, type CapDecision, countRows, executeRun, openRows, RunDefinition, RunDefinitions, Runs, stagedDefinition } from "@purser/engine"
import { Context, Effect, Exit, Layer, Option, Schema, type Scope, Stream } from "effect"
import type { WorkflowEngine } from "effect/workflow"
import { sameScope } from "./Caps.ts"
import { Command, Host } from "./Command.ts"
import { engineOn, gated, makeTables } from "./DurableEngine.ts"
import { Process } from "./Process.ts"
import { rngOf } from "./Rng.ts"
import { type RunShared, unavailable } from "./RunHolder.ts"
import { Members, Runner, tablesFor } from "./Runner.ts"
import { rowsOf, watchRegister } from "./RunTruth.ts"
import { isRetried } from "./Scenario.ts"
import type { RunPlan } from "./RunPlan.ts"
import type { Slot } from "./Slot.ts"
import { struck } from "./Store.ts"

/** A run as the world sees it. */
export interface WorldRun {
  /** Processes that the night takes with it. */
  readonly slots: ReadonlyArray<Slot>
  /** Starts it, and all that people do about it. */
  readonly begin: Effect.Effect<void, never, Scope.Scope>
  /** Whether rows stay that nobody will ask for: it was canceled, for good. */
  readonly leavesRows: Effect.Effect<boolean>
  /** Whether it has come to an end that nobody goes on from. */
  readonly isOver: Effect.Effect<boolean>
  /** What is wrong about its end. */
  readonly problems: Effect.Effect<ReadonlyArray<string>>
}

/** What a run needs of its world. */
export interface RunNeeds extends RunShared {
  readonly ledger: Ledger["Service"]
  readonly requests: ReadonlyArray<ChargeRequest>
  readonly caps: ReadonlyArray<CapDecision>
  readonly stash: RunStash["Service"]
}

const name = "run"
const lookMs = 600_000
const againMs = 5000
const definition = "seeded"

const linesOf = (requests: ReadonlyArray<ChargeRequest>) => requests.map((request, index) => ({ line: index + 1, chargeKey: request.chargeKey, request }))
const later = (atMs: number, act: Effect.Effect<unknown>) => Effect.forkScoped(Effect.delay(act, atMs))

/** The dispatch of somebody whose process never fails. */
const plainRun = ({ book, cap, network, pause }: RunNeeds) =>
  Effect.map(Layer.build(BillingRun.layer.pipe(
    Layer.provide(Layer.mergeAll(
      Layer.succeed(ChargeClient, network.client(0)), Layer.succeed(RunLedger, book), Layer.succeed(SpendCap, cap), Layer.succeed(ChargePause, pause)
    )),
    Layer.orDie
  )), (built) => Context.get(built, BillingRun))

const planAll = (run: BillingRun["Service"], { caps, requests }: RunNeeds) =>
  Effect.asVoid(Effect.orDie(run.plan({ runId: name, source: "the seed", rows: Stream.succeed(linesOf(requests)), decide: () => Effect.succeed(caps), overCap: "fits" })))

/** By the bare dispatch, which whoever started it starts again until nothing is open. */
const byDispatch = Effect.fnUntraced(function*(needs: RunNeeds, { concurrency }: RunPlan): Effect.fn.Return<WorldRun, never, Scope.Scope> {
  const run = yield* plainRun(needs)
  yield* planAll(run, needs)
  return {
    slots: [],
    begin: Effect.asVoid(Effect.forkScoped(Effect.forever(Effect.andThen(Effect.orDie(run.dispatch({ runId: name, concurrency })), Effect.sleep(lookMs))))),
    leavesRows: Effect.succeed(false),
    isOver: Effect.succeed(true),
    problems: Effect.succeed([])
  }
})

/** What people do from a process of their own. */
const people = ({ book, register, requests, scenario, storm }: RunShared & Pick<RunNeeds, "requests">, tables: Parameters<typeof engineOn>[0]) => {
  let visits = 0
  /** One visit; with `dies` its process ends after so many calls. */
  const visit = <A, E>(use: (runs: Runs["Service"]) => Effect.Effect<A, E, WorkflowEngine.WorkflowEngine>, dies?: number): Effect.Effect<Exit.Exit<A, E>> =>
    Effect.suspend(() => {
      const process = new Process(`person-${++visits}`, rngOf(`${scenario.seed}/person-${visits}`))
      let calls = 0
      const act = <B, E2>(call: Effect.Effect<B, E2>) =>
        process.outside(Effect.onExit(call, () => Effect.sync(() => {
          if (++calls === dies) process.kill()
        })))
      const store = <S extends object>(service: S) => gated(service, (operation, call) => act(struck(storm, process.name, `run ${operation}`, unavailable(operation), "idle")(call)))
      const layer = Runs.layer.pipe(
        Layer.provide(Layer.mergeAll(Layer.succeed(RunRegistry, store(register)), Layer.succeed(RunLedger, store(book)))),
        Layer.provideMerge(engineOn(tables, tablesFor(process, storm, act), { address: undefined, isAlive: () => Effect.succeed(true) }))
      )
      return Effect.exit(Effect.flatMap(Runs, use).pipe(Effect.provide(layer), Effect.scoped))
    })
  /** Says it until it is heard, or refused. */
  const insist = <A, E extends { readonly _tag: string }>(use: (runs: Runs["Service"]) => Effect.Effect<A, E>): Effect.Effect<void> =>
    Effect.gen(function*() {
      for (;;) {
        const exit = yield* visit(use)
        if (Exit.isSuccess(exit)) return
        const refused = Exit.findErrorOption(exit)
        if (Option.isSome(refused) && refused.value._tag === "RunError") return
        yield* Effect.sleep(againMs)
      }
    })
  const acts = (which: Effect.Effect<string | undefined>) =>
    Effect.forEach(storm.of("runAct"), ({ act, atMs, dies }) => later(atMs, Effect.flatMap(which, (run) => {
      if (run === undefined) return Effect.void
      const say = (runs: Runs["Service"]) => act === "resume" ? runs.resume(run, "a person") : runs[act](run, "a person", "asked to")
      storm.tell("a person", `${act}s ${run}`)
      return dies === undefined ? insist(say) : visit(say, dies)
    })), { discard: true })
  const found = (run: string) => Effect.orDie(register.find(run))
  /** Rows that are open, or were never made. */
  const isLeft = (run: RunRecord) => Effect.map(Effect.orDie(book.summary(run.runId)), (summary) => openRows(summary) > 0 || countRows(summary) < requests.length)
  /** Each ten minutes: a run that is on hold goes on. */
  const looks = (look: Effect.Effect<unknown>) => Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(lookMs), look)))
  const resumed = (run: RunRecord) => run.state === "paused" ? insist((runs) => runs.resume(run.runId, "a person")) : Effect.void
  return { visit, insist, acts, found, isLeft, looks, resumed }
}

/** A run that is to be canceled is not set going again. It may come to its end as it is, with nothing left, before anybody has read that. */
const eventProblems = Effect.fnUntraced(function*(register: RunRegistry["Service"], runId: string) {
  const events = (yield* Effect.orDie(register.events(runId))).filter(({ act }) => act !== "taken")
  return events.flatMap(({ act, actor }, index) => {
    const before = events[index - 1]?.act
    if (before === "canceling" && act !== "canceled" && act !== "interrupted" && act !== "finished") return [`run ${runId} was to be canceled, and ${actor} has it ${act}`]
    if (act === "canceled" && before !== "canceling") return [`run ${runId} is canceled by ${actor}, and nobody asked for it`]
    return []
  })
})

/** By the durable workflow, on two runners. */
const byWorkflow = Effect.fnUntraced(function*(needs: RunNeeds, { concurrency, defined, goesOn }: RunPlan): Effect.fn.Return<WorldRun, never, Scope.Scope> {
  const { book, caps, ledger, requests, scenario, storm, violations } = needs
  const members = new Members()
  const tables = yield* makeTables(members.lives)
  const register = watchRegister(needs.register, book, ledger, violations, true)
  const shared: RunShared = { ...needs, register }
  const seen = new Set<ChargeKey>()
  const definitions = RunDefinitions.layer(
    RunDefinition.rows(definition, { params: Schema.Struct({}), rows: () => Stream.make(linesOf(requests)) })
      .after("seen", { run: (rows) => Effect.sync(() => rows.forEach(({ chargeKey }) => seen.add(chargeKey))) })
  )
  const slots = [0, 1].map((index) => new Runner(`runner-${index}`, shared, { definitions, members, tables }))
  const { acts, found, insist, isLeft, looks, resumed, visit } = people({ ...shared, requests }, tables)
  if (!defined) yield* planAll(yield* plainRun(needs), needs)
  const start = insist((runs) => runs.start({
    name, definition: defined ? definition : stagedDefinition, params: {}, actor: "a person",
    options: {
      concurrency, overCap: "fits", headroomPercent: 100, reconcile: false,
      expected: caps.filter(({ scope }) => requests.some((request) => sameScope(scope, request))).map(({ expected, scope }) => ({ ...scope, expectedMinor: String(expected?.expectedMinor ?? 0n) }))
    },
    ...(defined ? {} : { plannedAs: name })
  }))
  const leaves = (run: RunRecord) => run.state === "canceled" && !goesOn
  const goOn = Effect.gen(function*() {
    const run = yield* found(name)
    if (run === undefined) return
    yield* resumed(run)
    if (isRunOver(run.state) && !leaves(run) && (yield* isLeft(run))) yield* insist((runs) => runs.extend({ run: name, actor: "a person" }))
  })
  return {
    slots,
    begin: Effect.gen(function*() {
      slots.forEach((slot) => slot.start())
      yield* Effect.forkScoped(start)
      yield* acts(Effect.succeed(name))
      yield* Effect.forEach(storm.of("runnerAt"), ({ atMs, forMs, how, runner }) => later(atMs, Effect.sync(() => slots[runner]![how](forMs))), { discard: true })
      yield* looks(goOn)
    }),
    leavesRows: Effect.map(found(name), (run) => run !== undefined && leaves(run)),
    isOver: Effect.gen(function*() {
      const run = yield* found(name)
      return run !== undefined && isRunOver(run.state) && (leaves(run) || !(yield* isLeft(run)))
    }),
    problems: Effect.gen(function*() {
      const run = yield* found(name)
      if (run === undefined || !isRunOver(run.state)) return [`run ${name} is ${run?.state ?? "unknown"} long after the last fault (at ${run?.step}: ${run?.detail})`]
      const problems = [...yield* eventProblems(register, run.runId)]
      const rows = yield* rowsOf(book, run.runId)
      if (run.state === "finished" && rows.length !== requests.length) problems.push(`run ${name} is finished with ${rows.length} rows of ${requests.length}`)
      if (defined && run.state === "finished" && !isRetried(scenario)) {
        problems.push(...rows.filter(({ chargeKey }) => !seen.has(chargeKey)).map(({ line }) => `run ${name} is finished, and the stage after it has not seen line ${line}`))
      }
      const answer = yield* visit(() => Effect.timeoutOption(executeRun(run), "10 minutes"))
      const told = Exit.isSuccess(answer) ? Option.getOrUndefined(answer.value) : undefined
      if (told === undefined) problems.push(`run ${name} is ${run.state}, and its workflow has no answer: ${String(answer)}`)
      else {
        const isSame = told.state === run.state && told.round === run.round && told.runId === run.runId && told.open === openRows(run.counted)
        if (!isSame) problems.push(`run ${name} is ${run.state} in round ${run.round} with ${openRows(run.counted)} open, and its workflow's answer is ${JSON.stringify(told)}`)
      }
      return problems
    })
  }
})

const pidOf = (params: unknown) => (params as { readonly pid: number }).pid

/** By commands: killed, the next one of the same file goes on. */
const byCommand = Effect.fnUntraced(function*(needs: RunNeeds, { concurrency, goesOn }: RunPlan): Effect.fn.Return<WorldRun, never, Scope.Scope> {
  const { book, caps, ledger, requests, scenario, storm, violations } = needs
  const tables = yield* makeTables(() => false)
  const host = new Host()
  const watched = watchRegister(needs.register, book, ledger, violations, false)
  const register: RunRegistry["Service"] = {
    ...watched,
    register: (run) =>
      Effect.gen(function*() {
        const answer = yield* watched.register(run)
        const others = (yield* watched.list({ states: ["running", "paused", "canceling"], limit: 1000 })).filter(({ params, runId }) => runId !== run.runId && !host.isGone(pidOf(params)))
        if (answer.isNew && others.length > 0) violations.push(`${others.map(({ runId }) => runId).join(" and ")} and ${run.runId} have the file in hand`)
        return answer
      })
  }
  const shared: RunShared = { ...needs, register }
  const input = { host, rows: linesOf(requests), decide: () => Effect.succeed(caps), concurrency, ledger, once: false }
  const command = new Command("command", shared, input)
  const bystander = new Command("bystander", shared, { ...input, once: true })
  const slots = [command, bystander]
  const { acts, isLeft, looks, resumed } = people({ ...shared, requests }, tables)
  const all = Effect.orDie(register.list({ limit: 1000 }))
  const newest = Effect.map(all, (runs) => runs[0])
  const leaves = () => command.ended === "canceled" && !goesOn
  return {
    slots,
    begin: Effect.gen(function*() {
      command.start()
      yield* acts(Effect.map(newest, (run) => run?.runId))
      yield* Effect.forEach(storm.of("secondCommand"), ({ atMs }) => later(atMs, Effect.sync(() => bystander.start())), { discard: true })
      yield* Effect.forEach(storm.of("runnerAt"), ({ atMs, forMs, how, runner }) => later(atMs, Effect.sync(() => slots[runner]![how](forMs))), { discard: true })
      yield* looks(Effect.gen(function*() {
        const run = yield* newest
        if (run === undefined) return
        yield* resumed(run)
        if (!leaves() && command.ended !== undefined && (command.ended === "canceled" || (yield* isLeft(run)))) command.again()
      }))
    }),
    leavesRows: Effect.sync(leaves),
    isOver: Effect.gen(function*() {
      const run = yield* newest
      return run !== undefined && bystander.process.dead && (leaves() || (command.ended === "done" && !(yield* isLeft(run))))
    }),
    problems: Effect.gen(function*() {
      const runs = yield* all
      const problems: Array<string> = []
      for (const run of runs) problems.push(...yield* eventProblems(register, run.runId))
      // At its end a register that is away is not the work's affair: the run is lost then, and said to be interrupted.
      const wasAway = scenario.faults.some(({ kind }) => kind === "store" || kind === "storeAway" || kind === "serialization" || kind === "failover")
      // A bystander that was killed is nobody's affair: he tries once.
      const last = runs.find(({ runId }) => runId.startsWith(`${command.name}.`))
      if (last === undefined) problems.push("the command has registered no run")
      else if (command.ended === undefined) problems.push(`the command has not ended: ${last.runId} is ${last.state} (${last.detail})`)
      else if (!isRunOver(last.state) && !wasAway) problems.push(`the command has ended as ${command.ended}, and ${last.runId} is ${last.state}`)
      return problems
    })
  }
})

/** The run of a world. */
export const makeRun = (needs: RunNeeds, plan: RunPlan): Effect.Effect<WorldRun, never, Scope.Scope> =>
  plan.by === "dispatch" ? byDispatch(needs, plan) : plan.by === "workflow" ? byWorkflow(needs, plan) : byCommand(needs, plan)
