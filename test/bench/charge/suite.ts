/** One charge, whole way: claim, one POST, settle; and the same with answers that take their time. */
import { type Bench, type Found, inTurns, ratios, type Suite } from "../support/Suite.ts"
import { spread } from "../support/spread.ts"
import { restateServer } from "./restateServer.ts"
import { chargeSidesOf, compareCharges, figuresOf, rates, withChargeServer } from "./compare.ts"

const peers = ["graphile-worker", "pg-boss"] as const

/** `charge`: all peers at answers without delay. */
export const charge: Suite = {
  name: "charge",
  title: "One charge, whole way",
  run: async (bench) => {
    const [count, inFlight] = [bench.count(8000, 5000), 256]
    const found = await compareCharges(bench, {
      programs: ["post", "by-hand-batched", "by-hand-single", ...peers, "dbos", ...restateServer() === undefined ? [] : ["restate" as const], "purser"],
      count,
      counts: { dbos: Math.ceil(count / 8), restate: Math.ceil(count / 8), "by-hand-single": Math.ceil(count / 2) },
      inFlight,
      latencyMs: 0,
      warmth: 2
    })
    const purser = rates(found.purser)
    const best = found.purser.map((_, round) => Math.max(...peers.map((peer) => found[peer][round]!.perSecond)))
    return {
      setting: `${count} charges a round, ${inFlight} under way, answers at once`,
      // Restate has a store of its own.
      figures: figuresOf(found, undefined, ["restate"]),
      goals: [
        { what: "purser ÷ by hand, batched", wanted: { atLeast: 0.85 }, values: ratios(purser, rates(found["by-hand-batched"])) },
        { what: "purser ÷ the better of graphile-worker and pg-boss", wanted: { atLeast: 1.2 }, values: ratios(purser, best) },
        { what: "purser ÷ DBOS", wanted: { atLeast: 15 }, values: ratios(purser, rates(found.dbos)) }
      ]
    }
  }
}

const waits = async (bench: Bench, latencyMs: number, calls: number, waves: number) => {
  const idealPerSecond = calls * 1000 / latencyMs
  const found = await compareCharges(bench, { programs: ["post", "by-hand-batched", "purser"], count: waves * calls, inFlight: 2 * calls, calls, latencyMs })
  const label = (program: string) => `${program}, ${latencyMs} ms, ${calls} calls under way`
  const middle = (program: keyof typeof found, of: "answerMs" | "underWay") => spread(found[program].map(({ steady }) => steady![of])).median.toFixed(1)
  return {
    figures: [...figuresOf(found, label), { program: label("ideal"), what: "charges/s", values: [idealPerSecond] }],
    goals: [{
      what: `purser ÷ ideal at ${latencyMs} ms, ${calls} calls under way`,
      wanted: { atLeast: 0.95 },
      values: rates(found.purser).map((rate) => rate / idealPerSecond),
      detail: `÷ the POST alone ${spread(ratios(rates(found.purser), rates(found.post))).median.toFixed(2)}; the processor had ${middle("purser", "underWay")} calls at once (the POST alone ${middle("post", "underWay")}) and took ${middle("purser", "answerMs")} ms for an answer`
    }]
  }
}

/** `waiting`: answers after 50 and 300 ms, at a rate that leaves the machine room. */
export const waiting: Suite = {
  name: "waiting",
  title: "Answers after 50 ms and 300 ms",
  run: async (bench) => {
    const seconds = bench.count(5, 3)
    const found = [
      await waits(bench, 50, 64, Math.max(4, Math.round(seconds * 1000 / 50))),
      await waits(bench, 300, 256, Math.max(4, Math.round(seconds * 1000 / 300)))
    ]
    return {
      setting: `calls for about ${seconds} s a round, over as many connections as may be under way; twice as many charges are at work, so that some are claimed or settled while others are called for, and they begin as far apart as calls end; rates are those of the steady state, from the answer to the last of the first calls until fewer calls are left than may be under way; the ideal is calls under way ÷ the time of an answer`,
      figures: found.flatMap(({ figures }) => figures),
      goals: found.flatMap(({ goals }) => goals)
    }
  }
}

/** `embedded`: PGlite in the process instead of the server. */
export const embedded: Suite = {
  name: "embedded",
  title: "The embedded database",
  run: async (bench): Promise<Found> => {
    const [count, inFlight] = [bench.count(8000, 4000), 256]
    const found = await compareCharges(bench, { programs: ["purser", "purser-embedded"], count, inFlight, latencyMs: 0, warmth: 2 })
    return {
      setting: `${count} charges a round, ${inFlight} under way, answers at once; both with fsync; PGlite counts no statements, and its processor time is the process's`,
      figures: figuresOf<"purser" | "purser-embedded">(found, (program) => program === "purser" ? "purser on PostgreSQL" : "purser, embedded", ["purser-embedded"]),
      goals: [{ what: "embedded ÷ PostgreSQL", wanted: { atLeast: 0.4 }, values: ratios(rates(found["purser-embedded"]), rates(found.purser)) }]
    }
  }
}

/** Processes, and how many charges each of them has under way. */
const crews = {
  "1 process": [1, 512],
  "2 processes": [2, 512],
  "4 processes": [4, 512],
  "4 processes, 512 in all": [4, 128]
} as const

/** `scale`: the same jobs by one, two and four processes. */
export const scale: Suite = {
  name: "scale",
  title: "Processes on one PostgreSQL",
  run: async (bench) => {
    const [count, latencyMs] = [bench.count(12_000, 6000), 50]
    const databaseUrl = await bench.server.newDatabase()
    const names = Object.keys(crews) as ReadonlyArray<keyof typeof crews>
    const found = await withChargeServer(latencyMs, (postUrl) =>
      inTurns(names, bench.rounds, async (name, round) => {
        const [processes, inFlight] = crews[name]
        const charged = await chargeSidesOf(bench, Array.from({ length: processes }, () => "purser" as const), count, {
          databaseUrl, postUrl, inFlight: processes * inFlight, run: `${process.pid}r${round}p${processes}i${inFlight}`
        }, 2)
        bench.say(`${name} ${charged.perSecond.toFixed(0)}/s`)
        return charged
      }))
    const one = found["1 process"]
    const cpu = (name: keyof typeof crews) => spread(found[name].map(({ cost }) => cost.cpuMicros! + cost.databaseCpuMicros!)).median.toFixed(0)
    return {
      setting: `${count} charges a round under one cap, 512 under way in each process, as where workers are added, and once 512 in all; answers after ${latencyMs} ms`,
      figures: figuresOf(found),
      goals: [{
        what: "4 processes ÷ 1 process",
        wanted: { atLeast: 0.95 },
        values: ratios(rates(found["4 processes"]), rates(one)),
        detail: `processor time of a charge, with the database's: ${cpu("1 process")} µs with one process, ${cpu("4 processes")} µs with four; with 512 in all ${spread(ratios(rates(found["4 processes, 512 in all"]), rates(one))).median.toFixed(2)} and ${cpu("4 processes, 512 in all")} µs`
      }]
    }
  }
}
