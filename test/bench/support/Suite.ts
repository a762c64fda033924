/**
 * What a suite is given and what it answers. A suite measures its programs in turns, round by round, so that a busy moment of
 * the machine meets all of them; it judges nothing but its own goals, and a missed one is a result and no failure.
 */
import type { DurableServer } from "./database.ts"
import { spread } from "./spread.ts"

/** What one job cost. What cannot be counted is left out. */
export interface Cost {
  /** Processor time of the program's own process. */
  readonly cpuMicros?: number
  /** Processor time of all processes of the database. */
  readonly databaseCpuMicros?: number
  readonly peakRssMb?: number
  readonly transactions?: number
  readonly statements?: number
  readonly fsyncs?: number
  readonly walBytes?: number
}

/** One figure of one program, in the order of the rounds. */
export interface Figure {
  readonly program: string
  /** What was counted, with its unit: `charges/s`, `p50 ms`. */
  readonly what: string
  readonly values: ReadonlyArray<number>
  readonly cost?: ReadonlyArray<Cost>
}

/** A ratio or a value that is wanted, in the order of the rounds; without values it was not measured, and `detail` says why. */
export interface Goal {
  readonly what: string
  readonly wanted: { readonly atLeast: number } | { readonly atMost: number }
  readonly values: ReadonlyArray<number>
  readonly detail?: string
}

/** All that a suite has found. */
export interface Found {
  /** With what it was measured, in a sentence. */
  readonly setting: string
  readonly figures: ReadonlyArray<Figure>
  readonly goals: ReadonlyArray<Goal>
}

/** How many rounds a suite has made, which may be others than were asked for: its figures have a value of each. */
export const roundsOf = (found: Found | undefined): number | undefined =>
  found === undefined || found.figures.length === 0 ? undefined : Math.max(...found.figures.map(({ values }) => values.length))

/** What a suite is given. */
export interface Bench {
  readonly quick: boolean
  readonly rounds: number
  readonly server: DurableServer
  /** How many jobs: in full, or in a quick run. */
  readonly count: (full: number, quick: number) => number
  /** The `purser` command as one file. */
  readonly command: () => Promise<string>
  /** A program of the bench as one file, as the command is. */
  readonly bundled: (entry: string) => Promise<string>
  /** A folder that is removed afterwards. */
  readonly folder: string
  readonly say: (text: string) => void
}

export interface Suite {
  readonly name: string
  readonly title: string
  readonly run: (bench: Bench) => Promise<Found>
}

/** One value for each round, of two programs' values. */
export const ratios = (mine: ReadonlyArray<number>, theirs: ReadonlyArray<number>): ReadonlyArray<number> => mine.map((value, round) => value / theirs[round]!)

/** Whether the median is as wanted; undefined when nothing was measured. */
export const isMet = ({ values, wanted }: Goal): boolean | undefined => {
  if (values.length === 0) return undefined
  const { median } = spread(values)
  return "atLeast" in wanted ? median >= wanted.atLeast : median <= wanted.atMost
}

/** Runs each program once a round; the answers by program, in the order of the rounds. The order turns with the rounds. */
export const inTurns = async <P extends string, A>(programs: ReadonlyArray<P>, rounds: number, measure: (program: P, round: number) => Promise<A>): Promise<Record<P, Array<A>>> => {
  const found = Object.fromEntries(programs.map((program) => [program, []])) as unknown as Record<P, Array<A>>
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < programs.length; turn++) {
      const program = programs[(turn + round) % programs.length]!
      found[program].push(await measure(program, round))
    }
  }
  return found
}
