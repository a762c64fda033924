/**
 * `pnpm chaos [--seed S] [--transport T …] [--fault K …] [--rows N]`: runs of real processes over every transport while everything
 * around them is killed, frozen, reset and restarted, and the simulator's books judged after each. Ends with 1 and the schedule of the first
 * that fails; the same seed gives the same schedule.
 */
import { Cause, Effect } from "effect"
import { randomInt } from "node:crypto"
import { parseArgs } from "node:util"
import { makeCluster } from "../src/Cluster.ts"
import { makeDisk } from "../src/Disk.ts"
import { type FaultKind, faultKinds, kindsOf, type Transport, transports } from "../src/Faults.ts"
import { describeFailure, type Part, play, type Store } from "../src/Play.ts"

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(randomInt(2 ** 31)) },
    transport: { type: "string", multiple: true, default: [] },
    fault: { type: "string", multiple: true, default: [] },
    rows: { type: "string", default: "1500" },
    each: { type: "string", default: "2" }
  }
})
const { seed } = values

const known = <A extends string>(given: ReadonlyArray<string>, all: ReadonlyArray<A>): ReadonlyArray<A> =>
  given.map((name) => {
    const found = all.find((one) => one === name)
    if (found === undefined) throw new Error(`there is no ${name}; there are ${all.join(", ")}`)
    return found
  })
const only = known(values.fault, Object.keys(faultKinds) as ReadonlyArray<FaultKind>)
const wanted = known(values.transport, transports)
const fits = (transport: Transport, store: Parameters<typeof kindsOf>[1]) =>
  (wanted.length === 0 || wanted.includes(transport)) && (only.length === 0 || kindsOf(transport, store).some((kind) => only.includes(kind)))

const columns = (cells: ReadonlyArray<string>) => cells.map((cell, at) => at === 0 ? cell.padEnd(26) : cell.padStart(10)).join("")
const perform = Effect.fnUntraced(function*(name: string, transport: Transport, store: Store, rows: number) {
  const part: Part = { seed, transport, store, rows, each: Number(values.each), only }
  const verdict = yield* Effect.catchCause(play(part), (cause) => Effect.fail(describeFailure(part, [Cause.pretty(cause)])))
  console.log(columns([name, String(verdict.payments), `${verdict.struck.length}/${verdict.schedule.length}`, String(verdict.starts), `${(verdict.ms / 1000).toFixed(0)} s`, verdict.violations.length === 0 ? "kept" : "BROKEN"]))
  if (process.env["CHAOS_VERBOSE"] !== undefined) for (const complaint of verdict.complaints) console.log(`  ${complaint}`)
  if (verdict.violations.length > 0) return yield* Effect.fail(describeFailure(part, verdict.violations, verdict.struck))
  return verdict.payments
})

const rows = Number(values.rows)
const failOver: ReadonlyArray<Transport> = ["router-dealer"]
const onServer = transports.filter((transport) => fits(transport, "server") && (only.length === 0 || only.some((kind) => kind !== "fail-over" && kind !== "fill-disk")))

const program = Effect.gen(function*() {
  console.log(`seed ${seed}`)
  console.log(columns(["run", "payments", "faults", "starts", "time", "promise"]))
  let payments = 0
  yield* Effect.scoped(Effect.gen(function*() {
    if (onServer.length === 0) return
    const cluster = yield* makeCluster(false)
    for (const transport of onServer) {
      payments += yield* perform(transport, transport, { kind: "server", cluster, name: `chaos_${transport.replaceAll("-", "_")}` }, rows)
    }
  }))
  for (const transport of failOver.filter((one) => fits(one, "replicated") && (only.length === 0 || only.includes("fail-over")))) {
    payments += yield* Effect.scoped(Effect.gen(function*() {
      const cluster = yield* makeCluster(true)
      return yield* perform(`${transport}, replicated`, transport, { kind: "server", cluster, name: "chaos_replicated" }, rows)
    }))
  }
  if (fits("memory", "folder") && (only.length === 0 || only.includes("fill-disk"))) {
    payments += yield* Effect.scoped(Effect.gen(function*() {
      const disk = yield* makeDisk
      if (disk === undefined) {
        console.log(columns(["memory, full disk", "", "", "", "", "not here"]))
        console.log("  this system lets nobody mount a small disk; a full one was NOT tried")
        return 0
      }
      return yield* perform("memory, full disk", "memory", { kind: "folder", disk }, Math.ceil(rows / 2))
    }))
  }
  console.log(`${payments} payments: the promise was kept`)
})

// Whoever stops it leaves no server and no disk behind.
const stop = new AbortController()
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort())

process.exitCode = await Effect.runPromise(program.pipe(
  Effect.as(0),
  Effect.catch((failure) => Effect.sync(() => {
    console.error(String(failure))
    return 1
  }))
), { signal: stop.signal })
