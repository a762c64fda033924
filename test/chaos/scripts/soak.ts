/**
 * `pnpm soak [--minutes 10] [--transport T] [--seed S] [--rows N]`: runs one after the other through the same workers, broker or
 * forwarder, whose connections are reset all the while. After each run, when nothing is under way, it is noted what each of these processes holds:
 * memory (what is left after its garbage was collected, and resident), descriptors and sockets. Ends with 1 when any of them grows, or when anybody paid twice.
 */
import { StripeSim } from "@purser/stripe-sim"
import { Database } from "@purser/postgres"
import { proxyTo } from "@purser/test-e2e/src/Proxy.ts"
import { rngOf } from "@purser/test-simulation/src/Rng.ts"
import { Clock, Effect, Redacted } from "effect"
import { randomInt } from "node:crypto"
import { parseArgs } from "node:util"
import { temporaryFolder } from "@purser/test-e2e/src/Store.ts"
import { bill, billsOf, periodOf } from "../src/Billing.ts"
import { makeCluster } from "../src/Cluster.ts"
import { type Transport, transports } from "../src/Faults.ts"
import { growth, type Holding, hold, table } from "../src/Holdings.ts"
import { judge } from "../src/Judge.ts"
import { raise } from "../src/Stage.ts"

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    transport: { type: "string", default: "router-dealer" },
    seed: { type: "string", default: String(randomInt(2 ** 31)) },
    rows: { type: "string", default: "200" }
  }
})
const transport = transports.find((one) => one === values.transport && one !== "pair" && one !== "memory") as Transport | undefined
if (transport === undefined) throw new Error(`there are no processes to watch over ${values.transport}; there are req-rep, router-dealer, push-pull, majordomo, pub-sub`)

const program = Effect.gen(function*() {
  const rng = rngOf(`${values.seed}/soak`)
  const endMs = (yield* Clock.currentTimeMillis) + Number(values.minutes) * 60_000
  const sim = yield* StripeSim
  const cluster = yield* makeCluster(false)
  const url = yield* cluster.createDatabase("soak")
  const stripe = yield* proxyTo(sim.port)
  const env = { PURSER_DATABASE_URL: url, PURSER_STRIPE_URL: `http://127.0.0.1:${stripe.port}` }
  const stage = yield* raise(transport, env, yield* temporaryFolder)
  const watched = [...stage.workers.map((post, index) => ({ name: `worker ${index}`, post })), ...(stage.between === undefined ? [] : [{ name: "between", post: stage.between }])]
  const resets: ReadonlyArray<Effect.Effect<void>> = [Effect.forEach(stage.messages, ({ reset }) => reset, { discard: true }), stripe.reset, cluster.proxy.reset]
  const holdings: Array<Holding> = []
  const violations: Array<string> = []
  console.log(`seed ${values.seed}, ${transport}, ${values.minutes} minutes`)
  let payments = 0
  for (let round = 1; (yield* Clock.currentTimeMillis) < endMs; round++) {
    const period = periodOf(round)
    const bills = billsOf(Number(values.rows))
    const storm = Effect.forEach(Array.from({ length: 4 }), () => Effect.andThen(Effect.sleep(rng.between(300, 1500)), rng.pick(resets)), { discard: true })
    const run = yield* bill({ period, bills, concurrency: 32, stage, env })
    const account = yield* Effect.raceFirst(run.whole, Effect.andThen(storm, Effect.never))
    const problems = yield* judge({ database: Database.layerUrl(Redacted.make(url), { maxConnections: 4 }), sim, period, bills, account })
    violations.push(...problems)
    payments += bills.filter(({ declined }) => !declined).length
    for (const { name, post } of watched) holdings.push(yield* hold(round, name, post))
    if (violations.length > 0) break
  }
  console.log(table(holdings))
  violations.push(...growth(holdings))
  console.log(violations.length === 0 ? `${payments} payments: nothing grew, and the promise was kept` : violations.slice(0, 40).join("\n"))
  return violations.length === 0 ? 0 : 1
}).pipe(Effect.scoped, Effect.provide(StripeSim.layer({ journalLimit: 1000, eventsLimit: 1000 })))

// Whoever stops it leaves no server behind.
const stop = new AbortController()
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort())

process.exitCode = await Effect.runPromise(program, { signal: stop.signal })
