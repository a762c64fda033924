/**
 * How many requests a second each pattern carries, beside raw zeromq.js that moves the same JSON, one message in a frame,
 * with the same window. The two sides are two processes over tcp.
 */
import { type Found, inTurns, ratios, type Suite } from "../support/Suite.ts"
import { spread } from "../support/spread.ts"
import { type Pattern, patterns, type Program, windowOf } from "./messages.ts"
import { type Carried, sidesOf } from "./sides.ts"

/** What is wanted of whom, beside whom. */
interface Wanted {
  readonly program: Program
  readonly beside: Program
  readonly atLeast: number
}
const wanted: Partial<Record<Pattern, ReadonlyArray<Wanted>>> = {
  "router-dealer": [{ program: "service", beside: "raw", atLeast: 2.5 }],
  "push-pull": [{ program: "service", beside: "raw", atLeast: 2.5 }],
  "req-rep": [{ program: "service", beside: "raw", atLeast: 0.85 }],
  // Charges by publishing have a contract that raw zeromq.js has not, and are beside one that moves as much JSON.
  "pub-sub": [{ program: "service", beside: "raw", atLeast: 2 }, { program: "charges", beside: "raw with charges", atLeast: 2 }]
}

const programsOf = (pattern: Pattern, quick: boolean): ReadonlyArray<Program> => {
  if (pattern === "pub-sub") return ["raw", "service", "raw with charges", "charges"]
  if (quick) return ["raw", "service"]
  // A batch needs a window: a REQ socket has one frame on its way.
  return pattern === "req-rep" ? ["raw", "service", "charges"] : ["raw", "service", "batch", "charges"]
}

export const transport: Suite = {
  name: "transport",
  title: "Transports",
  run: async (bench) => {
    const count = bench.count(100_000, 50_000)
    const found: Array<Found> = []
    for (const pattern of patterns.filter((name) => !bench.quick || name in wanted)) {
      const many = pattern === "req-rep" ? Math.ceil(count / 5) : count
      const carried = await inTurns(programsOf(pattern, bench.quick), bench.rounds, async (program) => {
        const one = await sidesOf(pattern, program, many)
        bench.say(`${pattern} ${program} ${one.perSecond.toFixed(0)}/s`)
        return one
      })
      const of = (program: Program, field: keyof Carried) => carried[program].map((one) => one[field])
      found.push({
        setting: "",
        figures: (Object.keys(carried) as Array<Program>).map((program) => ({
          program: `${pattern}, ${program}`, what: "requests/s", values: of(program, "perSecond"), cost: carried[program].map(({ cpuMicros, peakRssMb }) => ({ cpuMicros, peakRssMb }))
        })),
        goals: (wanted[pattern] ?? []).map(({ atLeast, beside, program }) => ({
          what: `${pattern}: ${program} ÷ ${beside}, ${windowOf(pattern)} under way`,
          wanted: { atLeast },
          values: ratios(of(program, "perSecond"), of(beside, "perSecond")),
          detail: `by processor time ${spread(ratios(of(beside, "cpuMicros"), of(program, "cpuMicros"))).median.toFixed(2)}`
        }))
      })
    }
    return {
      setting: `${count} requests a round (a fifth for req-rep, which has one under way), two processes over tcp; processor time and memory are of both`,
      figures: found.flatMap(({ figures }) => figures),
      goals: found.flatMap(({ goals }) => goals)
    }
  }
}
