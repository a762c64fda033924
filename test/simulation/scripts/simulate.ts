/**
 * Long runs: `pnpm simulate [--seeds N] [--hours H] [--from S] [--seed S]`. Runs N seeds (1000), or seeds for H hours, on all
 * processors; ends with 1 and a shrunk schedule at the first seed that fails. `--seed S` runs that one and tells what happens in it.
 * `--mutant NAME` plants one of the bugs of `src/mutants.ts`: with `--seed S` into that world, else into one after the other until it
 * shows; `--mutant all` does so with each and tells at which seed it was found. That ends with 0 when what was planted is found.
 */
import { fork } from "node:child_process"
import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { commandOf, describe, hunt, shrink } from "../src/hunt.ts"
import type { Mutant } from "../src/Mutant.ts"
import { mutants } from "../src/mutants.ts"
import { scenarioOf } from "../src/Scenario.ts"
import { runScenario } from "../src/World.ts"

// The traces of errors that are part of a world cost a tenth of its time.
const isChild = process.send !== undefined && process.argv[2] === "seeds"
Error.stackTraceLimit = isChild ? 0 : 10

interface Done {
  readonly seed: number
  readonly steps: number
  readonly requests: number
  readonly payments: number
  readonly simulatedMs: number
  readonly failure: string | undefined
}

const runSeed = async (seed: number): Promise<Done> => {
  const scenario = scenarioOf(String(seed))
  const { payments, requests, simulatedMs, steps, violations } = await runScenario(scenario)
  const failure = violations.length === 0 ? undefined : describe(String(seed), scenario, await shrink(scenario), violations)
  return { seed, steps, requests, payments, simulatedMs, failure }
}

/** One world, with all that happens in it. */
const tellSeed = async (seed: string, mutant: Mutant | undefined) => {
  const scenario = scenarioOf(seed)
  const { digest, lines, payments, requests, steps, violations } = await runScenario(scenario, mutant, true)
  console.log(lines.join("\n"))
  console.log(JSON.stringify(scenario, (_, value) => typeof value === "bigint" ? Number(value) : value, 2))
  console.log(violations.length === 0 ? `seed ${seed} keeps the promise` : describe(seed, scenario, await shrink(scenario, mutant), violations, mutant))
  console.log(`${steps} steps, ${requests} requests to Stripe, ${payments} payments, digest ${digest}`)
  return violations.length === 0
}

const tellHunt = async (mutant: Mutant) => {
  const found = await hunt(mutant)
  console.log(found === undefined
    ? `${mutant.name}: NOT found within ${mutant.within} seeds`
    : `${mutant.name}: found by seed ${found.seed} of at most ${mutant.within}: ${commandOf(found.seed, mutant)}\n  ${found.verdict.violations.find((violation) => mutant.shows.test(violation))}`)
  return found !== undefined
}

const plant = async (name: string, seed: string | undefined) => {
  const wanted = mutants.filter((mutant) => name === "all" || mutant.name === name)
  if (wanted.length === 0 || (seed !== undefined && wanted.length > 1)) {
    console.error(`--mutant names one of these${seed === undefined ? ", or all" : ""}:\n${mutants.map((mutant) => `  ${mutant.name}: ${mutant.story}`).join("\n")}`)
    return 1
  }
  if (seed !== undefined) return await tellSeed(seed, wanted[0]) ? 1 : 0
  let found = true
  for (const mutant of wanted) found = await tellHunt(mutant) && found
  return found ? 0 : 1
}

const main = async () => {
  const { values } = parseArgs({
    options: {
      seeds: { type: "string" }, hours: { type: "string" }, from: { type: "string", default: "1" }, seed: { type: "string" }, mutant: { type: "string" },
      processes: { type: "string", default: String(availableParallelism()) }
    }
  })
  if (values.mutant !== undefined) return plant(values.mutant, values.seed)
  if (values.seed !== undefined) return await tellSeed(values.seed, undefined) ? 0 : 1
  const beganMs = Date.now()
  const hours = values.hours === undefined ? undefined : Number(values.hours)
  const seeds = Number(values.seeds ?? (hours === undefined ? 1000 : Infinity))
  const first = Number(values.from)
  let next = first
  let failed = false
  const sum = { seeds: 0, steps: 0, requests: 0, payments: 0, simulatedMs: 0 }
  const isOver = () => failed || next >= first + seeds || (hours !== undefined && Date.now() - beganMs > hours * 3_600_000)
  await Promise.all(Array.from({ length: Number(values.processes) }, () => new Promise<void>((resolve, reject) => {
    const worker = fork(fileURLToPath(import.meta.url), ["seeds"])
    let over = false
    const goOn = () => {
      over = isOver()
      if (over) worker.disconnect()
      else worker.send(next++)
    }
    worker.on("exit", (code) => over ? resolve() : reject(new Error(`a process of the simulation ended with ${code}`)))
    worker.on("error", reject)
    worker.on("message", (done: Done) => {
      sum.seeds += 1
      sum.steps += done.steps
      sum.requests += done.requests
      sum.payments += done.payments
      sum.simulatedMs += done.simulatedMs
      if (done.failure !== undefined) {
        failed = true
        console.error(done.failure)
      }
      if (sum.seeds % 1000 === 0) console.log(`${sum.seeds} seeds`)
      goOn()
    })
    goOn()
  })))
  const seconds = (Date.now() - beganMs) / 1000
  console.log(`${sum.seeds} seeds in ${seconds.toFixed(0)} s (${Math.round(sum.seeds / seconds * 60)} a minute), ${(sum.simulatedMs / 86_400_000).toFixed(1)} simulated days, ${sum.steps} steps, ${sum.requests} requests to Stripe, ${sum.payments} payments: ${failed ? "the promise was BROKEN" : "the promise was kept"}`)
  return failed ? 1 : 0
}

if (isChild) process.on("message", (seed: number) => void runSeed(seed).then((done) => process.send!(done)))
else process.exitCode = await main()
