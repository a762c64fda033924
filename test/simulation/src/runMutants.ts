/** Planted bugs about billing runs: who takes one over, when one is over, and what people have said of it. */
import { ChargeRequest, RunMark, type RunRegistry } from "@purser/core"
import { Effect } from "effect"
import type { Mutant } from "./Mutant.ts"
import type { Scenario } from "./Scenario.ts"

const isBy = (by: "workflow" | "command") => ({ run }: Scenario) => run?.by === by
const has = (...kinds: ReadonlyArray<Scenario["faults"][number]["kind"]>) => ({ faults }: Scenario) => faults.some(({ kind }) => kinds.includes(kind))
const isCut = has("runner", "runnerAt", "night")
const isSaid = (act: string) => ({ faults }: Scenario) => faults.some((fault) => fault.kind === "runAct" && fault.act === act)
const all = (...tests: ReadonlyArray<(scenario: Scenario) => boolean>) => (scenario: Scenario) => tests.every((test) => test(scenario))

/** Those who have had the run in work. */
const holders = (register: RunRegistry["Service"], run: string) =>
  Effect.map(Effect.orDie(register.events(run)), (events) => [...new Set(events.filter(({ act }) => act === "taken").map(({ actor }) => actor))])

/** The same charge as another one: an item of its own, as a line number or a time of export makes it. */
const anew = (request: ChargeRequest, life: string) => {
  const run = RunMark.of(request)
  const copy = new ChargeRequest({ ...request, item: `${request.item ?? "charge"}_${life.replaceAll(/\W/g, "_")}` })
  return run === undefined ? copy : RunMark.on(copy, run)
}

/** All of them. */
export const runMutants: ReadonlyArray<Mutant> = [
  {
    name: "a run taken over sends its rows anew",
    story: "the next runner makes the rows again, with names of its own",
    within: 100,
    shows: /was never asked for/,
    fits: all(isBy("workflow"), isCut),
    sender: (client, { register }, life) => ({
      submit: (request) =>
        Effect.flatMap(holders(register, RunMark.of(request) ?? ""), (lives) => client.submit(lives.length > 1 ? anew(request, life) : request))
    })
  },
  {
    name: "a file read again makes new charges",
    story: "the next command of a file charges its rows as its own",
    within: 60,
    shows: /was never asked for/,
    fits: all(isBy("command"), isCut),
    sender: (client, _, life) => ({ submit: (request) => client.submit(life.endsWith(".1") ? request : anew(request, life)) })
  },
  {
    name: "a run says completed while rows are open",
    story: "what a worker has is counted as done",
    within: 300,
    shows: /says finished (?:by|to its person)/,
    fits: ({ run }) => run !== undefined && run.by !== "dispatch",
    book: (book) => ({
      ...book,
      summary: (run) => Effect.map(book.summary(run), (counts) => counts.filter(({ state }) => state !== "claimed" && state !== "attached"))
    })
  },
  {
    name: "a canceled run is charged by the next runner",
    story: "who takes a run over takes it for one that goes on, and sends what the cancellation had left",
    within: 1500,
    shows: /was told that .* is canceling, and sends|was to be canceled, and/,
    fits: all(isBy("workflow"), isCut, isSaid("cancel")),
    register: (register, _, life) => ({
      ...register,
      find: (run) =>
        Effect.gen(function*() {
          const found = yield* register.find(run)
          if (found?.state !== "canceling") return found
          const lives = yield* holders(register, found.runId)
          return lives.some((one) => one !== life) ? { ...found, state: "running" as const } : found
        })
    })
  },
  {
    name: "what people say is read once",
    story: "a run that is paused or canceled goes on as it was when it was begun",
    within: 600,
    shows: /was told that .* and sends/,
    fits: ({ faults, run }) => run !== undefined && faults.some((fault) => fault.kind === "runAct" && fault.act !== "resume"),
    register: (register) => {
      const first = new Map<string, RunRegistry["Service"]["find"]>()
      return {
        ...register,
        find: (run) =>
          Effect.flatMap(register.find(run), (found) => {
            if (found === undefined || found.state === "paused" || found.state === "canceling") return first.get(run)?.(run) ?? Effect.succeed(found)
            const known = first.get(run)
            if (known === undefined) first.set(run, () => Effect.succeed(found))
            return known?.(run) ?? Effect.succeed(found)
          })
      }
    }
  },
  {
    name: "two commands with one file",
    story: "nobody looks whether another command has the file in hand",
    within: 300,
    shows: /have the file in hand/,
    fits: all(isBy("command"), has("secondCommand")),
    register: (register) => ({ ...register, register: (run) => register.register({ ...run, digest: `${run.digest} of ${run.runId}` }) })
  }
]
