/**
 * Long runs: `pnpm simulate [--seeds N] [--hours H] [--from S] [--seed S]`. Runs N seeds (1000), or seeds for H hours, on all
 * processors; ends with 1 and a shrunk schedule at the first seed that fails. `--seed S` runs that one and tells what happens in it.
 */
import { fork } from "node:child_process"
import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { describe, shrink } from "../src/hunt.ts"
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

const main = async () => {
  const { values } = parseArgs({
    options: {
      seeds: { type: "string" }, hours: { type: "string" }, from: { type: "string", default: "1" }, seed: { type: "string" },
      processes: { type: "string", default: String(availableParallelism()) }
    }
  })
  if (values.seed !== undefined) {
    const scenario = scenarioOf(values.seed)
    const verdict = await runScenario(scenario, undefined, true)
    console.log(verdict.lines.join("\n"))
    console.log(JSON.stringify(scenario, (_, value) => typeof value === "bigint" ? Number(value) : value, 2))
    console.log(verdict.violations.length === 0 ? `seed ${values.seed} keeps the promise` : describe(values.seed, scenario, await shrink(scenario), verdict.violations))
    console.log(`${verdict.steps} steps, ${verdict.requests} requests to Stripe, ${verdict.payments} payments, digest ${verdict.digest}`)
    return verdict.violations.length === 0 ? 0 : 1
  }
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
