/**
 * Programs that charge, one after the other on one PostgreSQL and against one local server. A charge is one row before the
 * call and its answer after it, both durable. Statements and fsyncs are the server's own counts, also those of its background.
 */
import { beside, openSide, startServer } from "../support/children.ts"
import { type Bench, type Cost, type Figure, inTurns } from "../support/Suite.ts"
import type { Setting } from "./jobs.ts"
import type { ProgramName } from "./programs.ts"
import type { Answered } from "./server.ts"
import type { WorkedOnOwn } from "./side.ts"
import { type Steady, steadyOf } from "./steady.ts"

/** What is compared. */
export interface Comparison<P extends ProgramName> {
  readonly programs: ReadonlyArray<P>
  readonly count: number
  /** Fewer jobs for who needs longer. */
  readonly counts?: Partial<Record<P, number>>
  readonly inFlight: number
  /** Fewer calls under way than jobs. Jobs begin apart from each other then, as calls end apart, and the rate is that of the steady state. */
  readonly calls?: number
  readonly latencyMs: number
  /** Jobs before those that count, in parts of them (1). */
  readonly warmth?: number
}

/** One measurement. */
export interface Charged {
  readonly perSecond: number
  /** The server's part of it is nothing to a program whose database is elsewhere. */
  readonly cost: Cost
  /** What that database has counted, where it is the program's own. */
  readonly own?: Cost
  /** Where the calls under way are bounded. */
  readonly steady?: Steady
}

/** What the charge server has noted since it was asked before. */
const noted = async (postUrl: string): Promise<ReadonlyArray<Answered>> => (await (await fetch(postUrl)).json() as { readonly answered: ReadonlyArray<Answered> }).answered

/** The charge server, answering after a time. */
export const withChargeServer = async <A>(latencyMs: number, use: (postUrl: string) => Promise<A>): Promise<A> => {
  const { said, stop } = await startServer([beside(import.meta.url, "server.ts"), String(latencyMs)], /\n/)
  return use(said.trim()).finally(stop)
}

/** Programs at once, each in a process of its own with its part of the jobs; the time is from the start of the first to the end of the last. */
export const chargeSidesOf = async (bench: Pick<Bench, "server">, names: ReadonlyArray<ProgramName>, count: number, setting: Setting, warmth = 1): Promise<Charged> => {
  const part = Math.ceil(count / names.length)
  // Code is compiled only after thousands of charges, and a worker lives for weeks. Each of several processes is as warm as a single one.
  const warm = warmth * count
  const lifetime = await bench.server.counting()
  const sides = names.map((name, index) =>
    openSide(beside(import.meta.url, "side.ts"), [name, String(part), String(warm), JSON.stringify({ ...setting, run: `${setting.run}n${index}`, inFlight: Math.ceil(setting.inFlight / names.length) })]))
  await Promise.all(sides.map((side) => side.heard()))
  const { calls, postUrl } = setting
  if (calls !== undefined) await noted(postUrl)
  const counted = await bench.server.counting()
  const beganMs = performance.now()
  for (const side of sides) side.send("go")
  const worked = await Promise.all(sides.map((side) => side.heard<WorkedOnOwn>()))
  const tookMs = Math.max(performance.now() - beganMs, ...worked.map((one) => one.tookMs))
  const cost = await counted(part * names.length)
  const steady = calls === undefined ? undefined : steadyOf(await noted(postUrl), calls)
  await Promise.all(sides.map((side) => side.end()))
  // With those of the jobs that warmed up; see `counting`.
  const { fsyncs } = await lifetime(part * names.length + names.length * warm)
  const alone = worked.length === 1
  const { own } = worked[0]!
  return {
    perSecond: steady?.perSecond ?? part * names.length * 1000 / (alone ? worked[0]!.tookMs : tookMs),
    ...steady === undefined ? {} : { steady },
    ...own === undefined ? {} : { own },
    cost: {
      ...cost,
      fsyncs: fsyncs!,
      cpuMicros: worked.reduce((sum, one) => sum + one.cpuMicros, 0) / worked.length,
      peakRssMb: Math.max(...worked.map((one) => one.peakRssMb))
    }
  }
}

/** Measures each program once a round. */
export const compareCharges = async <P extends ProgramName>(bench: Pick<Bench, "server" | "rounds" | "say">, { calls, count, counts, inFlight, latencyMs, programs, warmth }: Comparison<P>): Promise<Record<P, Array<Charged>>> => {
  const databaseUrl = await bench.server.newDatabase()
  return withChargeServer(latencyMs, (postUrl) =>
    inTurns(programs, bench.rounds, async (name, round) => {
      const charged = await chargeSidesOf(bench, [name], counts?.[name] ?? count, { databaseUrl, postUrl, inFlight, ...calls === undefined ? {} : { calls, apartMs: latencyMs / calls }, run: `${process.pid}r${round}${name}l${latencyMs}` }, warmth)
      bench.say(`${name} ${charged.perSecond.toFixed(0)}/s`)
      return charged
    }))
}

export const rates = (charged: ReadonlyArray<Charged>): ReadonlyArray<number> => charged.map(({ perSecond }) => perSecond)

/** The figures of a comparison; programs whose database is not the server have no counts of it, but what they counted themselves. */
export const figuresOf = <P extends string>(found: Record<P, ReadonlyArray<Charged>>, label: (program: P) => string = (program) => program, elsewhere: ReadonlyArray<P> = []): ReadonlyArray<Figure> =>
  (Object.keys(found) as Array<P>).map((program) => ({
    program: label(program),
    what: "charges/s",
    values: rates(found[program]),
    cost: found[program].map(({ cost, own }) => elsewhere.includes(program) ? { cpuMicros: cost.cpuMicros!, peakRssMb: cost.peakRssMb!, ...own } : cost)
  }))
